// Gates in a fleet: what keeps a node from its update. The time at the start is 2026-01-01T00:00:00Z.
#include "tests/fleet/gated_fleet.hpp"
#include "tests/fleet/scripted_gates.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using agent::Gate;
using agent::GateAnswer;
using agent::GateQuestion;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct Gates : GatedFleet {
  void script(ScriptedGates::Answer answer) {
    gates = [this, answer](k8s::Client&, const std::string&) { return std::make_unique<ScriptedGates>(clock, answer); };
  }
  void expect_left_alone() {
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "CordonedByPerson");
    EXPECT_TRUE(unschedulable("n1"));
  }
  static GateAnswer closed() {
    return {{{.name = "any", .verdict = Gate::Verdict::closed, .reason = "Paused", .message = "paused"}}};
  }
};

// A node that waits for a gate does not delay other nodes.
TEST_F(Gates, AClosedGateHoldsAndReleases) {
  bool open = false;
  script([&](const GateQuestion&) { return open ? GateAnswer{} : closed(); });
  Machine& n1 = machine("n1");
  after(30min, [&] {
    expect_given_up("Paused");
    open = true;
  });
  run_fleet();
  expect_updated(n1);
}

// P6: the agent asks the gates once more when it has its slot.
TEST_F(Gates, AGateThatClosesWhileTheTurnIsTakenGivesItBack) {
  bool open = true;
  std::vector<GateQuestion::When> asked;
  script([&](const GateQuestion& question) {
    asked.push_back(question.when);
    if (question.when == GateQuestion::When::with_turn) open = false;
    return open ? GateAnswer{} : closed();
  });
  Machine& n1 = machine("n1");
  after(10min, [&] {
    expect_given_up("Paused");
    EXPECT_THAT(states_of("n1"), Not(Contains("draining")));
    script([](const GateQuestion&) { return GateAnswer{}; });
    n1.kill_agent();
  });
  run_fleet();
  EXPECT_THAT(asked, Contains(GateQuestion::When::with_turn));
  expect_updated(n1);
}

// The updates of the fleet begin within the window, but do not continue to the last node after its end.
TEST_F(Gates, NoNodeBeginsAfterTheEndOfTheWindow) {
  joined.schedule = agent::schedule({"00:00+35m"});
  for (const char* name : {"n1", "n2", "n3", "n4"}) machine(name, {.down = 4min});
  run_for(3h);
  std::size_t updated = 0;
  for (const auto& each : machines) {
    updated += each->version() == "1.1";
    if (each->version() == "1.1") continue;
    EXPECT_EQ(state(each->node()), "pending") << story();
    EXPECT_EQ(label(each->node(), "haulout.dev/reason"), "OutsideWindow");
  }
  EXPECT_GE(updated, 1u);
  EXPECT_LT(updated, 4u);
  EXPECT_EQ(slots_held(), 0u);
}

TEST_F(Gates, AShortWindowIsNotMissed) {
  joined.schedule = agent::schedule({"05:00+2m"});
  Machine& n1 = machine("n1");
  after(5h - 1s, [&] { EXPECT_EQ(label("n1", "haulout.dev/reason"), "OutsideWindow") << story(); });
  after(5h + 20s, [&] { EXPECT_THAT(states_of("n1"), Contains("draining")) << story(); });
  run_fleet(6h);
  expect_updated(n1);
}

// The longest of the last updates of this node took 50 minutes. A fifth more is one hour, and the node must take a slot
// first. So a window of 60 minutes is too short.
TEST_F(Gates, WhatCannotEndInTimeIsNotBegun) {
  agent::Record past;
  past.state = agent::State::idle;
  past.boot_id = "n1-boot-0";
  past.since = clock.wall_now();
  past.durations = {600s, 3000s};
  joined.schedule = agent::schedule({"00:00+60m", "12:00+62m"});
  Machine& n1 = machine("n1");
  annotate("haulout.dev/record", agent::encode_record(past));
  after(1min, [&] {
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "WindowTooShort") << story();
    EXPECT_THAT(message(), HasSubstr("12:00"));
  });
  after(12h - 1s, [&] { EXPECT_THAT(states_of("n1"), Not(Contains("waiting"))) << story(); });
  run_fleet(13h);
  expect_updated(n1);
}

// The machine has a bad battery or no NTP. The server's clock decides.
TEST_F(Gates, AMachinesWrongClockOpensNoWindow) {
  joined.schedule = agent::schedule({"05:00+4h"});
  Machine& n1 = machine("n1");
  after(10min, [&] { agents_clock.set_wrong_by(5h); });
  after(4h + 59min, [&] {
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "OutsideWindow") << story();
    EXPECT_THAT(states_of("n1"), Not(Contains("waiting"))) << story();
  });
  after(5h + 1min, [&] { EXPECT_THAT(states_of("n1"), Contains("draining")) << story(); });
  run_fleet(6h);
  expect_updated(n1);
}

TEST_F(Gates, AMachinesWrongClockMissesNoWindow) {
  agents_clock.set_wrong_by(-7h);
  joined.schedule = agent::schedule({"05:00+1h"});
  Machine& n1 = machine("n1");
  after(5h + 1min, [&] { EXPECT_THAT(states_of("n1"), Contains("draining")) << story(); });
  run_fleet(6h);
  expect_updated(n1);
}

// By the machine's own clock, the pause would be over. The API server's clock decides.
TEST_F(Gates, AMachinesWrongClockEndsNoPause) {
  agents_clock.set_wrong_by(24h);
  Machine& n1 = machine("n1");
  annotate("haulout.dev/pause", "2026-01-01T02:00:00Z; new disks");
  after(119min, [&] { EXPECT_EQ(label("n1", "haulout.dev/reason"), "Paused") << story(); });
  after(121min, [&] { EXPECT_THAT(states_of("n1"), Contains("draining")) << story(); });
  run_fleet(3h);
  expect_updated(n1);
}

// The agent asks the server for its time when the two clocks disagree.
TEST_F(Gates, AServersClockThatIsPutForwardIntoTheWindowIsNoticed) {
  joined.schedule = agent::schedule({"05:00+4h"});
  Machine& n1 = machine("n1");
  after(10min, [&] { clock.shift_wall(5h); });
  after(25min, [&] { EXPECT_THAT(states_of("n1"), Contains("draining")) << story(); });
  run_fleet(1h);
  expect_updated(n1);
}

TEST_F(Gates, APersonsCordonHoldsTheUpdateUntilItIsTakenBack) {
  Machine& n1 = machine("n1");
  cordon("n1");
  after(1h, [&] {
    expect_left_alone();
    EXPECT_EQ(slots_held(), 0u);
    EXPECT_THAT(message(), HasSubstr("since 2026-01-01T00:00:"));
    uncordon("n1");
  });
  after(1h + 10s, [&] { EXPECT_THAT(states_of("n1"), Contains("draining")) << story(); });
  run_fleet(2h);
  expect_updated(n1);
}

// The person uses `haulout cordon`, whose mark names the person. The node waits for a slot because another node is
// unavailable.
TEST_F(Gates, APersonsCordonOfANodeInLineTakesItOutOfTheLine) {
  Machine& n1 = machine("n1");
  add(a_node("n2"));
  cordon("n2");
  cluster.patch("nodes", "", "n2", {{"metadata", {{"labels", {{"haulout.dev/pool", "default"}}}}}});
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "waiting") << story();
    checks.by_a_person([&] {
      const Json mark = {{"run", "jane.1"}, {"by", "jane@laptop"}, {"at", "2026-01-01T00:05:00Z"}};
      cluster.patch("nodes", "", "n1",
                    {{"metadata", {{"annotations", {{"haulout.dev/cordon", mark.dump()}}}}},
                     {"spec", {{"unschedulable", true}}}});
    });
  });
  after(5min + 10s, [&] {
    expect_left_alone();
    uncordon("n2");
  });
  after(1h, [&] {
    expect_left_alone();
    uncordon("n1");
  });
  run_fleet(2h);
  expect_updated(n1);
}

// The person cordons the node after the agent has written the state `draining`, and before the agent cordons the node.
TEST_F(Gates, APersonsCordonFromBeforeTheDrainEndsItBeforeAPodLeaves) {
  add(a_pod("web-0", PodSpec{}));
  machine("n1", {.agent_starts = 1min});
  bool cordoned = false;
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource != "nodes" || change.key.name != "n1" || cordoned) return;
    const Json labels = change.object->at("metadata").value("labels", Json::object());
    if (labels.value("haulout.dev/state", "") != "draining") return;
    cordoned = true;
    cluster.after(Duration::zero(), [&] { cordon("n1"); });
  });
  after(1h, [&] {
    expect_left_alone();
    EXPECT_EQ(slots_held(), 0u) << story();
    EXPECT_EQ(checks.evictions, 0u) << story();
  });
  run_for(61min);
  EXPECT_TRUE(unschedulable("n1"));
}

TEST_F(Gates, APersonsCordonHoldsNothingWhereCordonedNodesAreUpdated) {
  joined.cordoned_nodes = agent::CordonedNodes::update;
  Machine& n1 = machine("n1");
  cordon("n1");
  run_fleet();
  EXPECT_EQ(n1.version(), "1.1") << story();
  EXPECT_TRUE(unschedulable("n1"));
}

TEST_F(Gates, AnAlertHoldsUntilItEnds) {
  prometheus.fire({"DiskFull"});
  Machine& n1 = machine("n1");
  after(1h, [&] {
    expect_given_up("BlockedByAlert");
    EXPECT_LT(prometheus.requests.size(), 90u) << "about once a minute";
    prometheus.fire({});
  });
  after(1h + 3min, [&] { EXPECT_THAT(states_of("n1"), Contains("draining")) << story(); });
  run_fleet(2h);
  expect_updated(n1);
}

TEST_F(Gates, APodThatBlocksIsWaitedForAndItsEndIsNoticedAtOnce) {
  joined.blocking_pod_selectors = {"app=batch"};
  PodSpec batch;
  batch.labels = {{"app", "batch"}};
  add(a_pod("batch-0", batch));
  Machine& n1 = machine("n1");
  after(1h, [&] {
    expect_given_up("BlockedByPod");
    EXPECT_THAT(message(), HasSubstr("shop/batch-0"));
    cluster.remove("pods", "shop", "batch-0");
  });
  after(1h + 5s, [&] { EXPECT_THAT(states_of("n1"), Contains("draining")) << story(); });
  run_fleet(2h);
  expect_updated(n1);
}

// A sentinel file that is never removed must not make the agent reboot the node forever.
TEST_F(Gates, ARebootThatChangesNothingIsNotRepeated) {
  Machine& n1 = machine("n1", {.still_wanted = true});
  after(2h, [&] {
    EXPECT_EQ(n1.boots(), 1u) << story();
    EXPECT_EQ(state("n1"), "degraded");
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "RebootLoop");
    EXPECT_FALSE(unschedulable("n1"));
    EXPECT_EQ(slots_held(), 0u) << "it stands in nobody's way";
    EXPECT_LT(n1.requests(), 200u) << "and does not go round and round";
    request();
  });
  run_fleet(4h);
  EXPECT_EQ(n1.boots(), 2u) << "a person may have it repeated, once\n" << story();
  EXPECT_EQ(state("n1"), "degraded");
}

// The next kernel has the same version name. It is a new need and no reboot loop, because there was no need in between.
TEST_F(Gates, TheSameNeedAgainAfterItWasGoneIsANewOne) {
  Machine& n1 = machine("n1");
  after(1h, [&] {
    EXPECT_EQ(state("n1"), "idle") << story();
    n1.plan().still_wanted = true;
    n1.want("1.1");
  });
  run_for(2h);
  EXPECT_EQ(n1.boots(), 2u) << story();
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "RebootLoop") << "and after that it is one";
}

// The operating system cannot report whether it needs a reboot when the update ends. Later it reports that it needs
// none. So the need that follows is a new one, and no reboot loop.
TEST_F(Gates, ANeedThatIsSeenToBeGoneOnlyLaterIsANewOneThen) {
  Machine& n1 = machine("n1");
  after(10s, [&] { n1.plan().unknown = true; });
  after(1h, [&] {
    EXPECT_EQ(state("n1"), "idle") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "BackendUnknown");
    n1.plan().unknown = false;
    n1.want("1.1");
  });
  after(2h, [&] {
    EXPECT_EQ(n1.boots(), 1u) << story();
    n1.plan().still_wanted = true;
    n1.want("1.1");
  });
  run_for(3h);
  EXPECT_EQ(n1.boots(), 2u) << story();
}

TEST_F(Gates, TooManyRebootsADayAreALoop) {
  Machine& n1 = machine("n1");
  for (int i = 2; i <= 5; ++i) after(i * 1h, [&, i] { n1.want("1." + std::to_string(i)); });
  after(10h, [&] {
    EXPECT_EQ(n1.boots(), 3u) << story();
    EXPECT_EQ(state("n1"), "degraded");
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "TooManyReboots");
  });
  run_for(26h);
  EXPECT_EQ(n1.version(), "1.5") << "a day later it goes on\n" << story();
  EXPECT_EQ(state("n1"), "idle");
}

// One bad version must not take down as many nodes as there are slots.
TEST_F(Gates, AVersionThatWasRolledBackIsNotTriedByTheOthers) {
  limit = 3;
  Machine& n1 = machine("n1", {.rolls_back = true});
  Machine& n2 = machine("n2", {.target = ""});
  after(10min, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    n2.want("1.1");
  });
  after(30min, [&] {
    EXPECT_EQ(state("n2"), "pending") << story();
    EXPECT_EQ(label("n2", "haulout.dev/reason"), "UpdateFailedElsewhere");
    n2.want("1.2");
  });
  run_for(1h);
  EXPECT_EQ(n2.version(), "1.2") << story();
  EXPECT_EQ(n1.boots(), 1u);
}

}  // namespace
}  // namespace haulout::fleet
