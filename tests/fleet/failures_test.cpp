// Updates that fail.
#include "tests/fleet/fleet.hpp"
#include "tests/worlds/faults.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Failures : Fleet {
  void web(int replicas) { add(a_workload("Deployment", "web", replicas, {{"terminationGracePeriodSeconds", 5}})); }
};

TEST_F(Failures, ARebootThatIsAcceptedAndDoesNotHappenIsTriedTheNextWay) {
  Machine& n1 = machine("n1", {.ignored_reboots = 1});
  machine("n2");
  run_fleet();
  EXPECT_THAT(n1.asked, ElementsAre("logind", "systemd"));
  for (const auto& each : machines) expect_updated(*each);
  EXPECT_EQ(slots_held(), 0u);
}

// A reboot command may stop a database or write firmware before it reboots the machine. So the agent lets it run for
// nine minutes.
TEST_F(Failures, ARebootThatTakesItsTimeIsNotCutShort) {
  Machine& n1 = machine("n1", {.methods = {"command"}, .reboot_takes = 9min});
  run_fleet();
  expect_updated(n1);
  EXPECT_THAT(n1.asked, ::testing::ElementsAre("command")) << story();
}

TEST_F(Failures, ARefusedRebootIsTriedTheNextWayAtOnce) {
  Machine& n1 = machine("n1", {.refused_reboots = 1});
  run_fleet(10min);
  EXPECT_THAT(n1.asked, ElementsAre("logind", "systemd"));
  expect_updated(n1);
}

// apt starts during the drain, and blocks the reboot. The drained node waits in the state `ready` until the block ends.
TEST_F(Failures, ARebootThatSomebodyBlocksByNowWaits) {
  Machine& n1 = machine("n1");
  bool ended = false;
  after(5s, [&] { n1.block("apt"); });
  after(2h, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "CannotReboot") << story();
    EXPECT_THAT(node("n1")["metadata"]["annotations"]["haulout.dev/message"], HasSubstr("apt"));
    ended = true;
    n1.block("");
  });
  run_fleet(3h);
  EXPECT_TRUE(ended);
  EXPECT_THAT(n1.asked, ElementsAre("logind")) << story();
  expect_updated(n1);
}

// The block begins after the last check and before the reboot request, so logind refuses. The agent does not try the
// next method, which would ignore the block.
TEST_F(Failures, ARebootThatIsRefusedForABlockIsNotTriedTheNextWay) {
  Machine& n1 = machine("n1", {.blocks_when_asked = true});
  after(30min, [&] {
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "CannotReboot") << story();
    n1.block("");
  });
  run_fleet(3h);
  EXPECT_THAT(n1.asked, ElementsAre("logind", "logind")) << story();
  expect_updated(n1);
}

// The agent also checks for a block before the next method, if the first method was accepted but caused no reboot.
TEST_F(Failures, ABlockHoldsForEveryWay) {
  Machine& n1 = machine("n1", {.ignored_reboots = 1});
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "rebooting") << story();
    n1.block("fwupd");
  });
  after(30min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    n1.block("");
  });
  run_fleet(3h);
  EXPECT_THAT(n1.asked, ElementsAre("logind", "logind")) << story();
  expect_updated(n1);
}

// While the reboot is blocked, the agent still notices when the node loses its cordon.
TEST_F(Failures, ABlockedRebootGivesWayToWhateverComes) {
  Machine& n1 = machine("n1");
  after(5s, [&] { n1.block("apt"); });
  after(30min, [&] {
    EXPECT_TRUE(n1.shows_ready()) << story();
    uncordon("n1");
  });
  after(30min + 1s, [&] { EXPECT_FALSE(n1.shows_ready()); });
  after(50min, [&] { n1.block(""); });
  run_fleet(3h);
  EXPECT_EQ(n1.boots(), 1u);
  expect_updated(n1);
}

// The node itself works, so the agent uncordons it. The node keeps its slot, so that the fault does not spread through
// the fleet.
TEST_F(Failures, ARebootThatNeverHappensIsUndoneAndHoldsTheFleet) {
  Machine& n1 = machine("n1", {.ignored_reboots = 9});
  Machine& n2 = machine("n2", {.target = ""});
  web(2);
  after(10min, [&] { n2.want("1.1"); });
  run_for(3h);
  EXPECT_EQ(n1.boots(), 0u);
  EXPECT_EQ(state("n1"), "degraded") << story();
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "RebootFailed");
  EXPECT_FALSE(unschedulable("n1"));
  EXPECT_EQ(slots_held(), 1u);
  EXPECT_EQ(n2.boots(), 0u);
}

TEST_F(Failures, APersonMayHaveAFailedRebootTriedAgain) {
  Machine& n1 = machine("n1", {.ignored_reboots = 2});
  after(1h, [&] {
    EXPECT_EQ(state("n1"), "degraded");
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"haulout.dev/request", "reboot"}}}}}});
  });
  run_fleet();
  expect_updated(n1);
}

TEST_F(Failures, ARolledBackNodeStopsTheFleetAndIsNotTriedAgain) {
  Machine& n1 = machine("n1", {.rolls_back = true});
  Machine& n2 = machine("n2", {.target = ""});
  after(10min, [&] { n2.want("1.1"); });
  run_for(3h);
  EXPECT_EQ(n1.boots(), 1u) << story();
  EXPECT_EQ(state("n1"), "degraded");
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "RolledBack");
  EXPECT_TRUE(unschedulable("n1"));
  EXPECT_EQ(slots_held(), 1u);
  EXPECT_EQ(n2.boots(), 0u);
}

// The slot is never freed by time alone.
TEST_F(Failures, ANodeThatNeverComesBackHoldsTheFleet) {
  machine("n1", {.stays_down = true});
  Machine& n2 = machine("n2", {.target = ""});
  after(10min, [&] { n2.want("1.1"); });
  run_for(24h);
  EXPECT_EQ(slots_held(), 1u);
  EXPECT_EQ(n2.boots(), 0u);
  EXPECT_EQ(label("n2", "haulout.dev/reason"), "WaitingForSlot") << story();
  EXPECT_THAT(node("n2")["metadata"]["annotations"]["haulout.dev/message"], HasSubstr("n1"));
}

// The machine of the holder was replaced under the same name. The garbage collector deletes the Lease of the old Node,
// so no person has to free the slot.
TEST_F(Failures, TheTurnOfANodeThatWasReplacedIsFree) {
  Machine& n1 = machine("n1", {.stays_down = true});
  Machine& n2 = machine("n2", {.target = ""});
  after(10min, [&] { n2.want("1.1"); });
  after(30min, [&] {
    n1.replaced = true;
    checks.by_a_person([&] { cluster.replace_node("n1"); });
    cluster.node_up("n1", "new-machine");
  });
  run_fleet(3h);
  expect_updated(n2);
}

TEST_F(Failures, AnApiServerThatIsAwayForAnHourDuringTheReboot) {
  Machine& n1 = machine("n1", {.down = 5min});
  after(40s, [&] { cluster.restart(1h); });
  web(1);
  run_fleet(6h);
  expect_updated(n1);
  EXPECT_EQ(n1.boots(), 1u);
  EXPECT_EQ(slots_held(), 0u);
}

// The node is the only control-plane node, so the API server goes down with it. The update must succeed nevertheless.
TEST_F(Failures, ASingleControlPlaneNode) {
  Machine& n1 = machine("n1", {.down = 3min});
  bool seen = false;
  cluster.on_change([&](const sim::Change& change) {
    if (seen || change.key.resource != "nodes" || change.type == sim::ChangeType::deleted) return;
    if ((*change.object)["metadata"].value("labels", Json::object()).value("haulout.dev/state", "") != "rebooting")
      return;
    seen = true;
    cluster.after(2s, [&] { cluster.restart(4min); });
  });
  run_fleet(2h);
  EXPECT_TRUE(seen);
  expect_updated(n1);
}

TEST_F(Failures, ADrainThatEndsWithoutDrainingGivesNodeAndTurnBack) {
  options.drain.timeout = 2min;
  Machine& n1 = machine("n1");
  machine("n2");
  PodSpec held;
  held.labels = {{"app", "held"}};
  add(a_pod("held-0", held));
  add(a_budget("held", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
  after(40min, [&] { cluster.remove("poddisruptionbudgets", "shop", "held"); });
  run_fleet(4h);
  EXPECT_THAT(states_of("n1"), Contains("pending")) << story();
  for (const auto& each : machines) expect_updated(*each);
  EXPECT_EQ(n1.boots(), 1u);
  EXPECT_EQ(slots_held(), 0u);
}

// P8: the Node shows what its agent knows now, not what an earlier agent wrote.
TEST_F(Failures, AReasonThatIsOverIsTakenAwayByTheNextAgent) {
  Machine& n1 = machine("n1", {.target = ""});
  after(2min, [&] {
    n1.plan().unknown = true;
    n1.want("");
  });
  after(4min, [&] {
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "BackendUnknown") << story();
    n1.plan().unknown = false;
    n1.kill_agent();
  });
  run_for(10min);
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "") << story();
  EXPECT_EQ(n1.status().reason, "");
}

// P8: an agent that takes over reports the state that it finds, and since when the node has been in it.
TEST_F(Failures, ARestartedAgentTellsWhereItIs) {
  Machine& n1 = machine("n1", {.target = ""});
  std::size_t told = 0;
  WallTime since{};
  after(2min, [&] {
    told = lines.size();
    since = n1.status().since;
    n1.kill_agent();
  });
  run_for(10min);
  EXPECT_GT(lines.size(), told) << story();
  EXPECT_EQ(n1.status().state, agent::State::idle);
  EXPECT_EQ(n1.status().since, since);
  EXPECT_NE(since, WallTime());
}

// P8: the condition shows the same reason as the label, also while the reason changes.
TEST_F(Failures, TheConditionSaysWhatTheLabelSays) {
  machine("n1");
  PodSpec held;
  held.labels = {{"app", "held"}};
  add(a_pod("held-0", held));
  add(a_budget("held", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
  run_for(5min);
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "BlockedByBudget") << story();
  std::string reason;
  const Json shown = node("n1");
  for (const Json& condition : shown["status"]["conditions"])
    if (condition["type"] == "MaintenanceInProgress") reason = condition["reason"];
  EXPECT_EQ(reason, "BlockedByBudget");
}

// The machine is going down, and D-Bus ends before the agent has the answer to its reboot request. The agent must not
// try another method or undo anything meanwhile.
TEST_F(Failures, AnAnswerThatIsLostWithTheMachineIsNoRefusal) {
  Machine& n1 = machine("n1", {.lost_answers = 1});
  web(2);
  run_fleet();
  EXPECT_THAT(n1.asked, ElementsAre("logind"));
  EXPECT_THAT(states_of("n1"), Not(Contains("degraded"))) << story();
  expect_updated(n1);
}

TEST_F(Failures, AnAnswerThatIsLostWithoutTheMachineLeadsToTheNextWay) {
  Machine& n1 = machine("n1", {.silent_reboots = 1});
  run_fleet();
  EXPECT_THAT(n1.asked, ElementsAre("logind", "systemd"));
  expect_updated(n1);
}

// The soak time exists for this case: the node goes down again before its slot is released.
TEST_F(Failures, ANodeThatGoesDownWhileItSoaksIsVerifiedAgain) {
  options.times.soak = 10min;
  Machine& n1 = machine("n1");
  Machine& n2 = machine("n2", {.target = ""});
  after(1min, [&] { n2.want("1.1"); });
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "soaking") << story();
    n1.power_cycle();
  });
  after(14min, [&] {
    EXPECT_EQ(state("n1"), "soaking") << story();
    EXPECT_EQ(n2.boots(), 0u);
  });
  run_fleet();
  EXPECT_EQ(n1.boots(), 2u);
  for (const auto& each : machines) expect_updated(*each);
}

TEST_F(Failures, ANodeThatIsNotReadyAfterItsSoakTimeHoldsTheFleet) {
  options.times.soak = 10min;
  machine("n1");
  after(5min, [&] { cluster.node_down("n1"); });
  after(30min, [&] {
    EXPECT_EQ(state("n1"), "soaking") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "NodeNotReady");
    EXPECT_EQ(slots_held(), 1u);
    cluster.node_up("n1", *machines[0]->boot_id());
  });
  run_fleet();
  expect_updated(*machines[0]);
  EXPECT_EQ(slots_held(), 0u);
}

std::size_t most_within_a_second(const std::vector<TimePoint>& times, TimePoint from) {
  std::size_t most = 0;
  for (const TimePoint begin : times)
    if (begin >= from)
      most = std::max(most, static_cast<std::size_t>(std::count_if(times.begin(), times.end(), [&](TimePoint time) {
                        return time >= begin && time < begin + 1s;
                      })));
  return most;
}

// Each status that the agent writes causes a watch event of its Node, and each watch event is a reason for a new proof.
// With a server that fails every other request, this once caused hundreds of requests a second.
class RepeatedProofs : public Failures, public ::testing::WithParamInterface<sim::FaultKind> {};

TEST_P(RepeatedProofs, P10_AProofThatComesAndGoesIsNotRepeatedWithoutAPause) {
  sim::FaultTransport half(cluster.api(), clock, world_rng);
  half.add({.verb = "list",
            .resource = "leases",
            .from = clock.now() + 5s,
            .until = clock.now() + 1min,
            .percent = 50,
            .fault = {.kind = GetParam()}});
  way = [&half] { return &half; };
  Machine& n1 = machine("n1", {.methods = {}});
  const TimePoint ready = clock.now() + 6100ms;
  after(2min, [&] {
    EXPECT_LE(most_within_a_second(n1.request_times(), ready), 20u) << story();
    EXPECT_GE(half.struck().size(), 3u);
    EXPECT_EQ(state("n1"), "ready") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "") << story();
    n1.power_cycle();
  });
  run_fleet();
  expect_updated(n1);
}
// With a Retry-After from the server, and without.
INSTANTIATE_TEST_SUITE_P(All, RepeatedProofs,
                         ::testing::Values(sim::FaultKind::throttle, sim::FaultKind::server_error));

}  // namespace
}  // namespace haulout::fleet
