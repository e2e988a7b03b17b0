// The conditions by which an agent tells what it does (agent/node/lifecycle_conditions.hpp).
#include "agent/node/lifecycle_conditions.hpp"
#include "k8s/codec.hpp"
#include "tests/fleet/gated_fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

struct Maintenance : GatedFleet {
  Maintenance() {
    way = [this] { return &faults; };
  }
  WallTime heard() const {
    const auto decoded = k8s::decode<k8s::Node>(node("n1").dump());
    for (const k8s::NodeCondition& condition : decoded->conditions)
      if (condition.last_heartbeat) return *condition.last_heartbeat;
    return {};
  }
  std::string condition(std::string_view type = "MaintenanceInProgress") const {
    return sim::text(sim::condition(node("n1"), type), "/status");
  }
  std::string message(std::string_view type) const { return sim::text(sim::condition(node("n1"), type), "/message"); }
  // The conditions of this Node that are True, abbreviated; "-" for none.
  std::string told(const std::string& name) const {
    const std::pair<const char*, const char*> names[] = {
        {"MaintenancePlanned", "P"}, {"DrainInProgress", "D"}, {"Drained", "E"}, {"MaintenanceInProgress", "M"}};
    std::string all;
    for (const auto& [type, letter] : names)
      if (sim::text(sim::condition(node(name), type), "/status") == "True") all += letter;
    return all.empty() ? "-" : all;
  }
  // Notes what told() says about this Node, each time that it changes.
  void follow(const std::string& name, std::vector<std::string>& steps) {
    cluster.on_change([this, name, &steps](const sim::Change& change) {
      if (change.key.resource != "nodes" || change.key.name != name || change.type == sim::ChangeType::deleted) return;
      const std::string now = told(name);
      if (steps.empty() ? now != "-" : now != steps.back()) steps.push_back(now);
    });
  }
  // Another program writes a condition.
  void write_condition(const std::string& type, const std::string& status) {
    checks.by_a_person([&] {
      Json all = node("n1")["status"]["conditions"];
      std::erase_if(all.get_ref<Json::array_t&>(), [&](const Json& each) { return each["type"] == type; });
      all.push_back({{"type", type}, {"status", status}, {"reason", "Theirs"}, {"message", "written by another"}});
      cluster.patch("nodes", "", "n1", {{"status", {{"conditions", all}}}});
    });
  }
  // From now on another program removes this condition, one second after each time that it is True.
  void fight_about(const std::string& type) {
    cluster.on_change([this, type](const sim::Change& change) {
      if (change.key.resource != "nodes" || condition(type) != "True") return;
      cluster.after(1s, [this, type] { remove_condition(type); });
    });
    remove_condition(type);
  }
  void remove_condition(const std::string& type) {
    checks.by_a_person([&] {
      Json all = node("n1")["status"]["conditions"];
      std::erase_if(all.get_ref<Json::array_t&>(), [&](const Json& each) { return each["type"] == type; });
      cluster.patch("nodes", "", "n1", {{"status", {{"conditions", all}}}});
    });
  }
  void tolerant_pod() {
    PodSpec late;
    late.spec = {{"tolerations", {{{"operator", "Exists"}}}}};
    add(a_pod("late-0", late));
  }
  void expect_degraded_in_service(const std::string& reason) {
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), reason);
    EXPECT_FALSE(unschedulable("n1"));
    expect_nothing_told();
  }
  void expect_nothing_told() const {
    for (const std::string_view type : k8s::lifecycle_conditions) EXPECT_EQ(condition(type), "") << story();
  }
  void refuse_status(TimePoint from, TimePoint until) {
    checks.conditions_late = 24h;
    faults.add({.verb = "patch",
                .resource = "nodes/status",
                .from = from,
                .until = until,
                .fault = {.kind = sim::FaultKind::server_error, .code = 403}});
  }
  sim::FaultTransport faults{cluster.api(), clock, world_rng};
};

TEST_F(Maintenance, EndsForANodeThatIsDegradedAndTakesPods) {
  machine("n1", {.ignored_reboots = 100});
  run_fleet();
  expect_degraded_in_service("RebootFailed");
}

TEST_F(Maintenance, IsNotThatOfANodeThatWasNeverCordonedForIt) {
  machine("n1", {.still_wanted = true});
  after(2h, [&] { expect_degraded_in_service("RebootLoop"); });
  run_for(2h);
}

TEST_F(Maintenance, GoesOnForANodeThatIsDegradedAndCordoned) {
  machine("n1", {.rolls_back = true});
  run_fleet();
  EXPECT_EQ(state("n1"), "degraded");
  EXPECT_TRUE(unschedulable("n1"));
  EXPECT_EQ(condition(), "True");
}

// One failed write must not leave the condition True for weeks.
TEST_F(Maintenance, IsTakenBackThoughItCouldNotBeWrittenAtThatMoment) {
  Machine& n1 = machine("n1");
  n1.on_ready = [&] { refuse_status(clock.now(), clock.now() + 30min); };
  after(20min, [&] {
    EXPECT_EQ(state("n1"), "idle") << story();
    EXPECT_EQ(condition(), "True");
  });
  after(42min, [&] { expect_nothing_told(); });
  run_for(42min);
}

// P10: an agent that is never allowed to write the condition does not try all the time.
TEST_F(Maintenance, ThatCanNeverBeWrittenIsTriedAgainNowAndThen) {
  Machine& n1 = machine("n1");
  n1.on_ready = [&] { refuse_status(clock.now(), TimePoint::max()); };
  std::size_t before = 0;
  after(1h, [&] { before = n1.requests(); });
  after(3h, [&] { EXPECT_LE(n1.requests() - before, 60u) << story(); });
  run_for(3h);
  EXPECT_EQ(condition(), "True");
}

// The heartbeat shows people whether a drain takes long or its agent is dead.
TEST_F(Maintenance, AnAgentInMaintenanceIsHeardOfNowAndThen) {
  machine("n1", {.methods = {}});
  for (const Duration when : {20min, 60min, 180min})
    after(when, [&] {
      EXPECT_EQ(state("n1"), "ready") << story();
      EXPECT_GE(heard(), clock.wall_now() - 6min);
    });
  std::size_t before = 0;
  after(1h, [&] { before = machines[0]->requests(); });
  after(2h, [&] {
    EXPECT_LE(machines[0]->requests() - before, 240u)
        << "heard, not noisy: each news of the Node is a reason to prove that it is ready";
  });
  after(3h + 1s, [&] {
    machines[0]->plan().agent_starts = 24h;
    machines[0]->kill_agent();
  });
  after(4h, [&] { EXPECT_LT(heard(), clock.wall_now() - 50min) << "the silence of the dead"; });
  run_for(4h + 1min);
}

// The agent that was killed has already written everything except the heartbeat.
TEST_F(Maintenance, AnAgentThatIsStartedAgainInMaintenanceIsHeardOf) {
  Machine& n1 = machine("n1", {.methods = {}});
  after(20min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    n1.kill_agent();
  });
  after(1h, [&] { EXPECT_GE(heard(), clock.wall_now() - 6min); });
  run_for(61min);
}

struct Told : Maintenance {
  Told() { checks.conditions_late = conditions_late_at_most; }
};

TEST_F(Told, EachStepOfAnUpdate) {
  machine("n1");
  Machine& n2 = machine("n2", {.target = ""});
  after(5s, [&] { n2.want("1.1"); });
  add(a_workload("Deployment", "web", 4, {{"terminationGracePeriodSeconds", 5}}));
  std::vector<std::string> first, second;
  follow("n1", first);
  follow("n2", second);
  std::size_t writes = 0;
  cluster.server().on_answer([&](const sim::AuditEntry& entry) {
    writes += entry.verb == "patch" && entry.resource == "nodes" && entry.subresource == "status" && entry.name == "n1";
  });
  run_fleet();
  EXPECT_THAT(first, ElementsAre("DM", "M", "EM", "M", "-")) << story();
  EXPECT_THAT(second, ElementsAre("P", "DM", "M", "EM", "M", "-")) << "it waits for its slot\n" << story();
  EXPECT_LE(writes, 9u) << "P10: one request for each transition, and one each for the cordon and the proof";
  const Json last = node("n1");
  for (const Json& shown : last["status"]["conditions"])
    EXPECT_FALSE(k8s::own_condition(shown["type"].get<std::string>())) << shown;
}

TEST_F(Told, NothingAboutANodeThatNeedsNoUpdate) {
  machine("n1", {.target = ""});
  std::vector<std::string> steps;
  follow("n1", steps);
  run_for(2h);
  EXPECT_THAT(steps, ElementsAre());
}

// An earlier agent wrote another condition, and left it on each node that it had ever updated.
TEST_F(Told, TheConditionOfAnEarlierAgentIsRemoved) {
  machine("n1", {.target = ""});
  write_condition("HauloutMaintenance", "False");
  run_for(1min);
  EXPECT_EQ(condition("HauloutMaintenance"), "") << story();
}

TEST_F(Told, ThePlanWithItsReasonAndTheTimeThatIsKnown) {
  machine("n1");
  const std::string end = k8s::format_time(clock.wall_now() + 2h);
  annotate("haulout.dev/pause", end + "; audit");
  after(1h, [&] {
    EXPECT_EQ(told("n1"), "P") << story();
    EXPECT_EQ(sim::text(sim::condition(node("n1"), "MaintenancePlanned"), "/reason"), "Paused");
    EXPECT_THAT(message("MaintenancePlanned"), ::testing::StartsWith("haulout: not before " + end + ": "));
  });
  run_fleet();
  expect_nothing_told();
  expect_updated(*machines[0]);
}

TEST_F(Told, ThePlanWithoutATimeIfNoneIsKnown) {
  Machine& n1 = machine("n1");
  annotate("haulout.dev/pause", "; audit");
  after(1h, [&] {
    EXPECT_EQ(told("n1"), "P") << story();
    EXPECT_THAT(message("MaintenancePlanned"), Not(::testing::HasSubstr("not before")));
    n1.want("");
  });
  after(1h + 5s, [&] { expect_nothing_told(); });
  run_fleet();
}

// The drain is blocked until its deadline. The next attempt begins after the agent's backoff.
TEST_F(Told, ThePlanAfterADrainThatDidNotSucceed) {
  options.drain.timeout = 1min;
  machine("n1");
  held_pod();
  std::vector<std::string> steps;
  follow("n1", steps);
  after(3min, [&] {
    EXPECT_EQ(told("n1"), "P") << story();
    EXPECT_THAT(message("MaintenancePlanned"), ::testing::StartsWith("haulout: not before "));
    release_pod();
  });
  run_fleet();
  EXPECT_EQ(steps.front(), "DM");
  EXPECT_EQ(steps.at(1), "P") << story();
  expect_nothing_told();
}

// P3: the condition Drained is withdrawn as the ready file is.
TEST(P3_DrainedIsWithdrawn, WhenAnyOfItIsLost) {
  struct OneNode : Told {
    void TestBody() override {}
    using Fleet::uncordon;
    using Told::checks;
    using Told::cluster;
    using Told::tolerant_pod;
    void go(const char* what, const std::function<void(OneNode&, Machine&)>& happens) {
      Machine& n1 = machine("n1", {.methods = {}});
      after(5min, [&] {
        EXPECT_EQ(told("n1"), "EM") << what << "\n" << story();
        happens(*this, n1);
      });
      after(5min + 1s, [&] { EXPECT_EQ(condition("Drained"), "") << what << "\n" << story(); });
      run_for(10min);
    }
  };
  OneNode().go("the cordon", [](OneNode& fleet, Machine&) { fleet.uncordon("n1"); });
  OneNode().go("the turn", [](OneNode& fleet, Machine&) {
    fleet.checks.by_a_person([&] {
      for (const Json& lease : fleet.cluster.all("leases"))
        fleet.cluster.remove("leases", "haulout", sim::name_of(lease));
    });
  });
  OneNode().go("the emptiness", [](OneNode& fleet, Machine&) { fleet.tolerant_pod(); });
  OneNode().go("the need", [](OneNode&, Machine& n1) { n1.want(""); });
}

// The request for the reboot is not taken back, but the node is not called drained any more.
TEST(P3_DrainedIsWithdrawn, AlsoWhileTheRebootIsUnderWay) {
  struct OneNode : Told {
    void TestBody() override {}
    using Fleet::uncordon;
    using Told::tolerant_pod;
    void go(const char* what, const std::function<void(OneNode&)>& happens) {
      machine("n1", {.ignored_reboots = 9});
      after(3min, [&] {
        EXPECT_EQ(state("n1"), "rebooting") << what << "\n" << story();
        EXPECT_EQ(told("n1"), "EM") << what << "\n" << story();
        happens(*this);
      });
      after(3min + 1s, [&] {
        EXPECT_EQ(state("n1"), "rebooting") << what << "\n" << story();
        EXPECT_EQ(told("n1"), "M") << what << "\n" << story();
      });
      run_for(4min);
    }
  };
  OneNode().go("the cordon", [](OneNode& fleet) { fleet.uncordon("n1"); });
  OneNode().go("the emptiness", [](OneNode& fleet) { fleet.tolerant_pod(); });
}

// The proof was about the time before the boot.
TEST_F(Told, P3_AfterTheBootNothingIsProved) {
  Machine& n1 = machine("n1");
  n1.on_asked = [&] { n1.plan().boot_takes = 5min; };
  std::string while_down;
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource == "nodes" && !n1.powered()) while_down = told("n1");
  });
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "verifying") << story();
    EXPECT_EQ(told("n1"), "M");
    // A person puts the node into service before the agent has verified it.
    uncordon("n1");
  });
  after(5min + 3s, [&] {
    EXPECT_EQ(state("n1"), "verifying") << story();
    EXPECT_EQ(told("n1"), "-");
  });
  run_fleet();
  EXPECT_EQ(while_down, "EM") << "until the machine goes down";
}

// An agent that has just started has proved nothing. While it was dead, pods may have come.
TEST_F(Told, P3_ARestartedAgentProvesTheNodeAnew) {
  Machine& n1 = machine("n1", {.agent_starts = 1min, .methods = {}});
  std::vector<std::string> steps;
  follow("n1", steps);
  after(5min, [&] {
    EXPECT_EQ(told("n1"), "EM") << story();
    n1.kill_agent();
    steps.clear();
  });
  after(7min, [&] {
    EXPECT_THAT(steps, ElementsAre("M", "EM")) << story();
    n1.kill_agent();
    tolerant_pod();
    steps.clear();
  });
  after(8min + 5s, [&] { EXPECT_EQ(steps.front(), "M") << story(); });
  run_for(10min);
  EXPECT_THAT(steps, Contains("DM"));
}

// P5: what kubectl, a storage operator or a person has written is theirs. kubectl leaves its conditions on the node.
TEST_F(Told, P5_TrueConditionsOfOthersStay) {
  machine("n1");
  write_condition("Drained", "True");
  write_condition("MaintenancePlanned", "True");
  const auto theirs = [this](std::string_view type) { return sim::condition(node("n1"), type).dump(); };
  const std::string drained = theirs("Drained"), planned = theirs("MaintenancePlanned");
  bool changed = false;
  cluster.on_change([&](const sim::Change&) {
    changed = changed || theirs("Drained") != drained || theirs("MaintenancePlanned") != planned;
  });
  run_fleet();
  expect_updated(*machines[0]);
  EXPECT_FALSE(changed) << story();
  EXPECT_EQ(told("n1"), "PE");
}

TEST_F(Told, P5_AConditionThatOthersTakeOverIsTheirs) {
  machine("n1");
  held_pod();
  after(3min, [&] {
    EXPECT_EQ(told("n1"), "DM") << story();
    write_condition("DrainInProgress", "True");
    release_pod();
  });
  run_fleet();
  EXPECT_EQ(told("n1"), "D") << story();
  EXPECT_EQ(message("DrainInProgress"), "written by another");
}

// A drain of kubectl ends with DrainInProgress=False, which stays. Later drains of the agent must be told nevertheless.
TEST_F(Told, AFalseConditionOfOthersIsTakenOver) {
  machine("n1");
  write_condition("DrainInProgress", "False");
  std::vector<std::string> steps;
  follow("n1", steps);
  run_fleet();
  EXPECT_EQ(steps.front(), "DM") << story();
  expect_nothing_told();
}

// P10: another program removes a condition each time that the agent writes it.
TEST_F(Told, P10_NobodyIsFoughtWithAllTheTime) {
  checks.conditions_late = 12h;
  Machine& n1 = machine("n1", {.methods = {}});
  fight_about("Drained");
  std::size_t before = 0;
  after(1h, [&] { before = n1.requests(); });
  run_for(3h);
  EXPECT_LE(n1.requests() - before, 1000u) << story();
}

// A webhook refuses to patch the Node, so the next state cannot be written. Meanwhile nobody watches the pods.
TEST_F(Told, P3_DrainedIsWithdrawnWhileTheNextStateCannotBeWritten) {
  Machine& n1 = machine("n1");
  n1.on_ready = [&] { n1.block("an admin"); };
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    EXPECT_EQ(told("n1"), "EM") << story();
    cluster.forbid("patch", "nodes");
    n1.on_ready = [] {};
    n1.block("");
  });
  after(7min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    tolerant_pod();
  });
  after(7min + 1s, [&] { EXPECT_EQ(told("n1"), "M") << story(); });
  run_for(8min);
}

// While the node took pods, nothing was proved.
TEST_F(Told, P3_AnotherCordonDoesNotBringDrainedBack) {
  machine("n1", {.ignored_reboots = 9});
  after(3min, [&] {
    EXPECT_EQ(state("n1"), "rebooting") << story();
    EXPECT_EQ(told("n1"), "EM") << story();
    uncordon("n1");
  });
  after(3min + 2s, [&] { cordon("n1"); });
  after(3min + 20s, [&] {
    EXPECT_EQ(state("n1"), "rebooting") << story();
    EXPECT_EQ(told("n1"), "M") << story();
  });
  run_for(4min);
}

// The agent has patience with others, but Drained must go at once.
TEST_F(Told, P3_DrainedIsWithdrawnAtOnceInAFightAboutAnotherCondition) {
  machine("n1", {.ignored_reboots = 9});
  after(3min, [&] {
    EXPECT_EQ(told("n1"), "EM") << story();
    fight_about("MaintenanceInProgress");
  });
  after(6min, [&] {
    EXPECT_EQ(state("n1"), "rebooting") << story();
    EXPECT_EQ(told("n1"), "E") << story();
    tolerant_pod();
  });
  after(6min + 1s, [&] { EXPECT_EQ(condition("Drained"), "") << story(); });
  run_for(7min);
}

// The agent has patience with a server that has refused to restore MaintenanceInProgress.
TEST_F(Told, P3_DrainedIsWithdrawnAtOnceAfterAnotherWriteWasRefused) {
  machine("n1", {.ignored_reboots = 9});
  after(3min, [&] {
    EXPECT_EQ(told("n1"), "EM") << story();
    refuse_status(clock.now(), clock.now() + 3min);
    remove_condition("MaintenanceInProgress");
  });
  after(6min + 1s, [&] {
    EXPECT_EQ(state("n1"), "rebooting") << story();
    EXPECT_EQ(told("n1"), "E") << story();
    tolerant_pod();
  });
  after(6min + 2s, [&] { EXPECT_EQ(condition("Drained"), "") << story(); });
  run_for(7min);
}

// Another program writes the record again and again, so the agent pauses before it reads the Node anew.
TEST_F(Told, P3_DrainedIsWithdrawnBeforeTheAgentGivesWay) {
  machine("n1", {.methods = {}});
  for (int round = 0; round < 6; ++round) {
    const Duration when = 5min + round * 1min;
    after(when, [&] {
      EXPECT_EQ(told("n1"), "EM") << story();
      const std::string record = node("n1")["metadata"]["annotations"].value("haulout.dev/record", "");
      checks.by_a_person([&] { annotate("haulout.dev/record", Json::parse(record).dump(1)); });
    });
    after(when + 300ms, [&] { EXPECT_EQ(condition("Drained"), "") << story(); });
  }
  run_for(11min);
}

// A state counts when it is written.
TEST_F(Told, OnlyStatesThatAreWritten) {
  machine("n1");
  held_pod();
  std::vector<std::string> steps;
  follow("n1", steps);
  after(3min, [&] {
    EXPECT_EQ(told("n1"), "DM") << story();
    cluster.forbid("patch", "nodes");
    pause_cluster("audit");
  });
  run_for(10min);
  EXPECT_EQ(state("n1"), "draining") << story();
  EXPECT_THAT(steps, ElementsAre("DM"));
}

// An agent that has just started does not know the time yet.
TEST_F(Told, ThePlanKeepsItsTimeWhenTheAgentIsStartedAgain) {
  Machine& n1 = machine("n1");
  annotate("haulout.dev/pause", k8s::format_time(clock.wall_now() + 2h) + "; audit");
  const TimePoint end = clock.now() + 119min;
  std::size_t without = 0;
  after(1h, [&] {
    EXPECT_THAT(message("MaintenancePlanned"), ::testing::StartsWith("haulout: not before "));
    cluster.on_change([&](const sim::Change& change) {
      const std::string shown = message("MaintenancePlanned");
      without += change.key.resource == "nodes" && state("n1") == "pending" && clock.now() < end &&
                 !shown.starts_with("haulout: not before ");
    });
    n1.kill_agent();
  });
  after(1h + 5min, [&] { EXPECT_THAT(message("MaintenancePlanned"), ::testing::StartsWith("haulout: not before ")); });
  run_for(1h + 10min);
  EXPECT_EQ(without, 0u) << story();
}

// P10: each new message of the agent would be an occasion to restore the condition.
TEST_F(Told, P10_NewMessagesDoNotShortenAFight) {
  checks.conditions_late = 12h;
  machine("n1");
  annotate("haulout.dev/pause", "; audit");
  std::size_t writes = 0, before = 0;
  cluster.server().on_answer([&](const sim::AuditEntry& entry) {
    writes += entry.verb == "patch" && entry.resource == "nodes" && entry.subresource == "status" && entry.name == "n1";
  });
  after(3min, [&] {
    EXPECT_EQ(told("n1"), "P") << story();
    before = writes;
    fight_about("MaintenancePlanned");
  });
  for (int round = 0; round < 90; ++round)
    after(3min + round * 20s, [&, round] { annotate("haulout.dev/pause", "; audit " + std::to_string(round)); });
  run_for(34min);
  EXPECT_LE(writes - before, 15u) << story();
}

// The other conditions have their heartbeats nevertheless.
TEST_F(Told, AnAgentInAFightIsHeardOf) {
  checks.conditions_late = 12h;
  machine("n1", {.methods = {}});
  after(5min, [&] { fight_about("Drained"); });
  for (int minutes = 60; minutes < 120; minutes += 2)
    after(std::chrono::minutes(minutes), [&] { EXPECT_GE(heard(), clock.wall_now() - 5min - 10s) << story(); });
  run_for(2h);
}

}  // namespace
}  // namespace haulout::fleet
