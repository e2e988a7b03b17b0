#include "rehearse/fleet_rehearsal.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/rehearse/rehearsal_text.hpp"
#include "k8s/codec.hpp"
#include "rehearse/charts.hpp"
#include "tests/rehearse/a_fleet.hpp"

namespace haulout::rehearse {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

// Three nodes with four CPUs and one pod each. The pods belong to a ReplicaSet and take 20 s to terminate.
class FleetRehearsalTest : public ::testing::Test, protected AFleet {
 protected:
  FleetRehearsalTest() : AFleet("4") {}

  std::string problem() {
    input.snapshot.documents = {{document()}};
    auto result = rehearse_fleet(input);
    return result ? "" : result.error().message();
  }
  static std::string lines_of(const FleetRehearsal& rehearsal) {
    std::string text;
    for (const std::string& line : cli::fleet_lines(rehearsal)) text += line + '\n';
    return text;
  }
  static const FleetNode& node_of(const FleetRehearsal& rehearsal, const std::string& name) {
    for (const FleetNode& node : rehearsal.nodes)
      if (node.name == name) return node;
    throw std::runtime_error("no node " + name);
  }
  static Duration turn_after(const FleetRehearsal& rehearsal, std::size_t index) {
    return turn_of(rehearsal.nodes.at(index)).value_or(WallTime::max()) - rehearsal.began;
  }
  void annotate(const std::string& node, const std::string& key, const std::string& value) {
    item(node)["metadata"]["annotations"][key] = value;
  }
};

TEST_F(FleetRehearsalTest, OneNodeAfterTheOther) {
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.end, FleetEnd::over);
  ASSERT_THAT(rehearsal.nodes, SizeIs(3));
  EXPECT_EQ(rehearsal.most_out, 1u);
  for (std::size_t i = 0; i < 3; ++i) {
    const FleetNode& node = rehearsal.nodes[i];
    EXPECT_TRUE(node.updated) << node.name;
    EXPECT_EQ(node.state, agent::State::idle);
    EXPECT_GE(out_of_service(node, rehearsal.ended), drained_in(node, rehearsal.ended) + input.reboot_time);
    EXPECT_LE(out_of_service(node, rehearsal.ended), 25s + 20s + input.reboot_time + 25s) << node.name;
    if (i > 0) EXPECT_GT(turn_after(rehearsal, i), turn_after(rehearsal, i - 1) + input.reboot_time);
  }
  EXPECT_GE(rehearsal.ended - rehearsal.began, 3 * (20s + input.reboot_time));
  EXPECT_LE(rehearsal.ended - rehearsal.began, 3 * (90s + input.reboot_time));
  EXPECT_EQ(cli::exit_code(rehearsal), 0) << lines_of(rehearsal);
  EXPECT_THAT(lines_of(rehearsal), AllOf(HasSubstr("node/n1 updated: "), HasSubstr("3 of 3 nodes updated in "),
                                         HasSubstr("at most 1 node unavailable at a time because of updates")));
}

TEST_F(FleetRehearsalTest, AsManyAtATimeAsMayBe) {
  input.config.max_unavailable = "2";
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.most_out, 2u);
  EXPECT_LT(turn_after(rehearsal, 1), input.reboot_time);
  EXPECT_GT(turn_after(rehearsal, 2), input.reboot_time);
  EXPECT_EQ(cli::exit_code(rehearsal), 0) << lines_of(rehearsal);
}

TEST_F(FleetRehearsalTest, WavesComeOneAfterTheOther) {
  for (const char* name : {"n4", "n5", "n6"}) add_node(name, "4");
  input.config.max_unavailable = "3";
  const FleetRehearsal at_once = play();
  input.config.ramp = "1,2";
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(cli::exit_code(rehearsal), 0) << lines_of(rehearsal);
  // When the nodes of a wave have come back, and when the next wave begins.
  const auto back = [&](std::size_t index) { return rehearsal.nodes.at(index).phases.back().from - rehearsal.began; };
  EXPECT_GE(turn_after(rehearsal, 1), back(0)) << "the first wave has one node";
  EXPECT_LT(turn_after(rehearsal, 2), back(1)) << "the second has two";
  EXPECT_GE(turn_after(rehearsal, 3), std::max(back(1), back(2)));
  EXPECT_LT(turn_after(rehearsal, 5), std::min(back(3), back(4))) << "then max-unavailable limits";
  EXPECT_GT(rehearsal.ended - rehearsal.began, at_once.ended - at_once.began + input.reboot_time / 2);
  EXPECT_THAT(rehearsal.assumed, Contains("all nodes are updated to the same version, in waves of 1,2"));
}

TEST_F(FleetRehearsalTest, NodesGoInTheConfiguredOrder) {
  add_node("n4", "4");
  for (const auto& [name, rank] :
       {std::pair("n1", "4"), std::pair("n2", "3"), std::pair("n3", "2"), std::pair("n4", "1")})
    item(name)["metadata"]["labels"]["rank"] = rank;
  input.config.roll_out_order = "label:rank";
  std::vector<std::string> names;
  for (const FleetNode& node : play().nodes) names.push_back(node.name);
  ASSERT_THAT(names, SizeIs(4));
  // The first one may ask before the others wait.
  EXPECT_TRUE(std::is_sorted(names.begin() + 1, names.end(), std::greater<>())) << names[0] << names[1] << names[2];
}

TEST_F(FleetRehearsalTest, ADeadNodeHasNoAgentAndNoKubelet) {
  add_node("n4", "4");
  silence("n4");
  input.config.max_unavailable = "2";
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(node_of(rehearsal, "n4").left_out, "it is not Ready");
  EXPECT_TRUE(node_of(rehearsal, "n3").updated);
  EXPECT_EQ(rehearsal.most_out, 1u) << "it counts against the two";
  EXPECT_THAT(
      rehearsal.assumed,
      Contains(
          "a node whose Ready condition is Unknown has no running kubelet, so no pod ends or starts there: node n4"));
}

TEST_F(FleetRehearsalTest, PartOfThePool) {
  add_node("n4", "4");
  input.config.max_unavailable = "50%";
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.most_out, 2u);
  EXPECT_EQ(cli::exit_code(rehearsal), 0) << lines_of(rehearsal);
}

TEST_F(FleetRehearsalTest, ABudgetThatNeverOpensHoldsTheTurnAndIsNamed) {
  add_budget(3);
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.end, FleetEnd::stuck);
  EXPECT_EQ(cli::exit_code(rehearsal), 1);
  const FleetNode& first = rehearsal.nodes[0];
  EXPECT_EQ(first.state, agent::State::draining);
  EXPECT_EQ(first.reason, "BlockedByBudget");
  ASSERT_THAT(first.holds_up, SizeIs(1));
  EXPECT_THAT(first.holds_up[0], AllOf(HasSubstr("shop/web-"), HasSubstr("PodDisruptionBudget shop/web")));
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_FALSE(rehearsal.nodes[i].updated);
    EXPECT_EQ(rehearsal.nodes[i].reason, "WaitingForSlot");
    EXPECT_THAT(rehearsal.nodes[i].message, HasSubstr(first.name)) << "who has the turn";
  }
  EXPECT_GE(rehearsal.ended - rehearsal.began, input.give_up);
  EXPECT_THAT(lines_of(rehearsal),
              AllOf(HasSubstr("node/" + first.name + " would still be draining, unavailable for "),
                    HasSubstr("would still wait: "), HasSubstr("0 of 3 nodes updated"), HasSubstr("stopped: ")));
}

TEST_F(FleetRehearsalTest, ARuleThatWaitsIsNoStandstill) {
  input.config.drain.policy.rules = {drain::parse_pod_rule("kind:ReplicaSet=wait-completed=7h").value()};
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.end, FleetEnd::over) << lines_of(rehearsal);
  EXPECT_GE(rehearsal.ended - rehearsal.began, 7h);
  EXPECT_THAT(rehearsal.assumed, Contains(HasSubstr("do not finish before the time limit of their rule")));
}

TEST_F(FleetRehearsalTest, ADrainThatMayNotTakeForEverLetsTheOthersGo) {
  item("web-a")["metadata"]["labels"]["app"] = "lone";
  item("web-a")["metadata"].erase("ownerReferences");
  add_budget(1);
  items.back()["spec"]["selector"]["matchLabels"]["app"] = "lone";
  input.config.drain.timeout = 10min;
  const FleetRehearsal rehearsal = play();
  EXPECT_FALSE(node_of(rehearsal, "n1").updated);
  EXPECT_TRUE(node_of(rehearsal, "n2").updated);
  EXPECT_TRUE(node_of(rehearsal, "n3").updated);
  EXPECT_EQ(cli::exit_code(rehearsal), 1);
}

TEST_F(FleetRehearsalTest, AWindowIsWaitedFor) {
  input.config.windows = {"Wed 01:00+6h"};  // the next window begins in four days and seventeen hours
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.end, FleetEnd::over) << lines_of(rehearsal);
  EXPECT_GE(turn_after(rehearsal, 0), 4 * 24h + 16h);
  EXPECT_LE(turn_after(rehearsal, 0), 4 * 24h + 17h + 1min);
  EXPECT_EQ(cli::exit_code(rehearsal), 0);
}

TEST_F(FleetRehearsalTest, AWindowThatNeverOpensEndsIt) {
  input.config.blackouts = {"2027-01-01..2027-12-31"};
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.end, FleetEnd::horizon);
  EXPECT_EQ(cli::exit_code(rehearsal), 1);
  EXPECT_THAT(lines_of(rehearsal), HasSubstr("thirty days"));
}

TEST_F(FleetRehearsalTest, TheSoakTimeIsWaitedFor) {
  input.config.soak = 30min;
  input.give_up = 10min;
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.end, FleetEnd::over) << "longer than is given up after, but under way";
  EXPECT_GE(rehearsal.ended - rehearsal.began, 90min);
  EXPECT_LE(out_of_service(rehearsal.nodes[0], rehearsal.ended), 10min) << "a node that is watched takes pods";
}

TEST_F(FleetRehearsalTest, NodesThatAreNotReadyAreLeftOutAndCount) {
  item("n2")["status"]["conditions"][0]["status"] = "False";
  input.config.max_unavailable = "2";
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.nodes.back().name, "n2");
  EXPECT_THAT(rehearsal.nodes.back().left_out, HasSubstr("not Ready"));
  EXPECT_TRUE(node_of(rehearsal, "n1").updated);
  EXPECT_TRUE(node_of(rehearsal, "n3").updated);
  EXPECT_EQ(rehearsal.most_out, 1u) << "the other one is n2";
  EXPECT_EQ(cli::exit_code(rehearsal), 1);
  EXPECT_THAT(lines_of(rehearsal), HasSubstr("node/n2 left out: it is not Ready"));
}

TEST_F(FleetRehearsalTest, WithoutAReadyNodeThereIsNothingToPlay) {
  for (const char* name : {"n1", "n2", "n3"}) item(name)["status"]["conditions"][0]["status"] = "False";
  EXPECT_THAT(problem(), AllOf(HasSubstr("no node that is Ready"), HasSubstr("3 nodes")));
}

TEST_F(FleetRehearsalTest, WhatAgentsWroteBeforeDoesNotMatter) {
  annotate("n1", "haulout.dev/record", R"({"v":1,"state":"degraded","cause":"RebootFailed"})");
  annotate("n1", "haulout.dev/message", "the reboot did not happen");
  item("n1")["metadata"]["labels"]["haulout.dev/state"] = "degraded";
  item("n1")["metadata"]["labels"]["haulout.dev/reason"] = "RebootFailed";
  annotate("n2", "haulout.dev/pause", "; somebody looks at it");
  annotate("n3", "hook.haulout.dev/before-drain.storage", "");
  items.push_back(
      {{"apiVersion", "coordination.k8s.io/v1"},
       {"kind", "Lease"},
       {"metadata",
        {{"name", "haulout-default-0"}, {"namespace", "haulout"}, {"labels", {{"haulout.dev/pool", "default"}}}}},
       {"spec", {{"holderIdentity", "n9/n9"}}}});
  items.push_back({{"apiVersion", "v1"},
                   {"kind", "ConfigMap"},
                   {"metadata", {{"name", "haulout"}, {"namespace", "haulout"}}},
                   {"data", {{"pause", R"({"reason":"holidays"})"}}}});
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(cli::exit_code(rehearsal), 0) << lines_of(rehearsal);
  EXPECT_THAT(rehearsal.assumed,
              Contains(AllOf(HasSubstr("pauses are not simulated"), HasSubstr("node/n2"), HasSubstr("ConfigMap"))));
  EXPECT_THAT(rehearsal.assumed, Contains(AllOf(HasSubstr("hooks do not run"), HasSubstr("node/n3"))));
}

TEST_F(FleetRehearsalTest, AnAgentsCordonIsTakenBackAPersonsStays) {
  for (const char* name : {"n1", "n2"}) {
    item(name)["spec"]["unschedulable"] = true;
    item(name)["spec"]["taints"] = {
        {{"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}, {"timeAdded", "2027-01-15T07:00:00Z"}}};
  }
  annotate("n1", "haulout.dev/cordon", R"({"run":"n1.5","by":"agent","at":"2027-01-15T07:00:00Z"})");
  const FleetRehearsal rehearsal = play();
  EXPECT_THAT(rehearsal.assumed, Contains(AllOf(HasSubstr("start again"), HasSubstr("node/n1"), Not(HasSubstr("n2")))));
  // A person has cordoned n2. So its agent does not update it, and no other node may be updated until n2 is uncordoned.
  EXPECT_FALSE(node_of(rehearsal, "n2").updated);
  EXPECT_EQ(node_of(rehearsal, "n2").reason, "CordonedByPerson");
  EXPECT_FALSE(node_of(rehearsal, "n1").updated);
  EXPECT_FALSE(node_of(rehearsal, "n3").updated);
  EXPECT_THAT(node_of(rehearsal, "n1").message, HasSubstr("n2"));
}

TEST_F(FleetRehearsalTest, WhatFindsNoRoomWhileItsNodeIsAwayIsNamed) {
  item("web")["spec"]["replicas"] = 0;
  items.push_back(workload("ReplicaSet", "big", {{"replicas", 1}}));
  item("big")["spec"]["template"]["spec"] = pod_spec("3800m");
  items.push_back(pod("big-a", "ReplicaSet", "big", "3800m", "n1"));
  item("n2")["status"]["allocatable"]["cpu"] = "2";
  item("n3")["status"]["allocatable"]["cpu"] = "2";
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.end, FleetEnd::over);
  ASSERT_THAT(rehearsal.no_room, SizeIs(1)) << "although it found room on n1 again";
  EXPECT_EQ(rehearsal.no_room[0].controller, "ReplicaSet/big");
  EXPECT_THAT(rehearsal.no_room[0].message, HasSubstr("Insufficient cpu"));
  EXPECT_EQ(cli::exit_code(rehearsal), 1);
}

// Adds pods that terminate for another ten minutes. They block the agent of their node, so that n1 is updated first.
class FleetRehearsalBesideLeavingPodsTest : public FleetRehearsalTest {
 protected:
  FleetRehearsalBesideLeavingPodsTest() {
    input.config.blocking_pod_selectors = {"leaves=yes"};
    item("web")["spec"]["replicas"] = 0;
  }
  void add_leaving(const std::string& name, const std::string& cpu, const std::string& node) {
    Json leaving = pod(name, "ReplicaSet", "gone", cpu, node);
    leaving["metadata"]["labels"]["leaves"] = "yes";
    leaving["metadata"]["deletionTimestamp"] = k8s::format_time(input.snapshot.read_at + 10min);
    leaving["metadata"]["deletionGracePeriodSeconds"] = 900;
    items.push_back(std::move(leaving));
  }
  // Adds `count` pods with this CPU request on n1.
  void add_big(int count, const std::string& cpu) {
    items.push_back(workload("ReplicaSet", "big", {{"replicas", count}}));
    item("big")["spec"]["template"]["spec"] = pod_spec(cpu);
    for (int i = 0; i < count; ++i) items.push_back(pod("big-" + std::to_string(i), "ReplicaSet", "big", cpu, "n1"));
  }
};

// When the terminating pod is deleted, the scheduler places the waiting pod on its node. Until then the terminating pod
// keeps its resources.
TEST_F(FleetRehearsalBesideLeavingPodsTest, WhatWaitsForOneOfThemHasRoom) {
  add_big(1, "3800m");
  add_leaving("leaving-2", "3800m", "n2");
  add_leaving("leaving-3", "1900m", "n3");
  const FleetRehearsal rehearsal = play();
  EXPECT_THAT(rehearsal.no_room, IsEmpty());
  EXPECT_THAT(rehearsal.assumed,
              Contains(AllOf(HasSubstr("only after pods that are terminating on other nodes are deleted"),
                             HasSubstr("shop/big"))));
  EXPECT_EQ(cli::exit_code(rehearsal), 0) << lines_of(rehearsal);
}

TEST_F(FleetRehearsalBesideLeavingPodsTest, CapacityForOnePodIsNotUsedTwice) {
  add_big(2, "1900m");
  for (const char* name : {"n2", "n3"}) item(name)["status"]["allocatable"]["cpu"] = "2";
  add_leaving("leaving-2", "1900m", "n2");
  items.push_back(pod("staying", "DaemonSet", "gone", "1900m", "n3"));
  item("staying")["metadata"]["labels"]["leaves"] = "yes";
  EXPECT_THAT(play().no_room, SizeIs(1));
}

TEST_F(FleetRehearsalTest, WhatIsNotPlayedIsSaid) {
  input.config.prometheus_url = "http://prometheus.monitoring:9090";
  input.config.hooks_dir = "/srv/hooks";
  input.config.reboot_methods = {agent::RebootMethod::none};
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(cli::exit_code(rehearsal), 0) << lines_of(rehearsal);
  EXPECT_THAT(lines_of(rehearsal), AllOf(HasSubstr("Prometheus is not queried"), HasSubstr("hooks do not run"),
                                         HasSubstr("another program reboots each machine")));
}

TEST_F(FleetRehearsalTest, WhatCannotBePlayedIsRefused) {
  input.config.slots = agent::SlotsChoice::fleetlock;
  EXPECT_THAT(problem(), AllOf(HasSubstr("FleetLock"), HasSubstr("slots: lease")));
  input.config.slots = agent::SlotsChoice::lease;
  input.config.windows = {"every other day"};
  EXPECT_THAT(problem(), HasSubstr("every other day"));
}

TEST_F(FleetRehearsalTest, TheRebootTakesAsLongAsIsAssumed) {
  input.reboot_time = 20min;
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(cli::exit_code(rehearsal), 0) << "longer than the agents' own limit for a machine to go down";
  EXPECT_GE(out_of_service(rehearsal.nodes[0], rehearsal.ended), 20min);
}

TEST_F(FleetRehearsalTest, TheSameSnapshotGivesTheSameReport) {
  add_budget(2);
  EXPECT_EQ(cli::fleet_json(play(), input), cli::fleet_json(play(), input));
}

TEST_F(FleetRehearsalTest, JsonHasEverything) {
  add_budget(2);
  const FleetRehearsal rehearsal = play();
  const Json report = Json::parse(cli::fleet_json(rehearsal, input));
  EXPECT_EQ(report["kind"], "FleetRehearsalReport");
  EXPECT_EQ(report["end"], "over");
  EXPECT_EQ(report["mostOutOfService"], 1);
  EXPECT_EQ(report["startedAt"].get<std::string>().substr(0, 10), "2027-01-15");
  EXPECT_EQ(report["assumptions"]["rebootSeconds"], 180.0);
  ASSERT_EQ(report["nodes"].size(), 3u);
  for (const Json& node : report["nodes"]) {
    EXPECT_EQ(node["updated"], true);
    EXPECT_EQ(node["state"], "idle");
    EXPECT_GT(node["drainSeconds"].get<double>(), 20.0);
    EXPECT_GT(node["outOfServiceSeconds"].get<double>(), 200.0);
    std::vector<std::string> states;
    for (const Json& phase : node["phases"]) states.push_back(phase["state"]);
    EXPECT_THAT(states, AllOf(Contains("draining"), Contains("rebooting"), Contains("verifying"), Contains("idle")));
    EXPECT_TRUE(node["phases"].back()["until"].is_null());
  }
}

TEST_F(FleetRehearsalTest, ThePictureHasABarForEachNode) {
  item("n3")["status"]["conditions"][0]["status"] = "False";
  input.config.max_unavailable = "2";
  input.config.soak = 1min;
  const std::string svg = fleet_svg(play(), "A <title>");
  EXPECT_THAT(
      svg, AllOf(HasSubstr("A &lt;title&gt;"), HasSubstr("n1 was draining for 2"), HasSubstr("n2 was rebooting for 3m"),
                 HasSubstr("class=\"soaks\""), HasSubstr("n3 (left out: it is not Ready)"), HasSubstr("</svg>\n")));
  EXPECT_THAT(svg, Not(HasSubstr("<title>\n")));
}

}  // namespace
}  // namespace haulout::rehearse
