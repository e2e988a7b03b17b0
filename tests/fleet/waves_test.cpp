// A version is rolled out in waves (--ramp): the next wave begins when all nodes of the waves before have come back
// well.
#include "tests/fleet/fleet.hpp"
#include "tests/fleet/scripted_gates.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct InWaves : Fleet {
  InWaves() {
    limit = 3;
    in_waves("1,2");
  }
  void in_waves(const std::string& ramp) {
    slots.ramp = *agent::parse_ramp(ramp);
    options.ramp = true;
    checks.ramp = ramp;
  }
  void halted_at(std::size_t nodes) {
    slots.halt_after = checks.halt_after = nodes;
    options.ramp = true;
  }
  std::string reason(const std::string& name) const { return label(name, "haulout.dev/reason"); }
  std::string message(const std::string& name) const { return sim::annotation(node(name), "haulout.dev/message"); }
  void annotate(const std::string& name, const std::string& key, const Json& value) {
    cluster.patch("nodes", "", name, {{"metadata", {{"annotations", {{key, value}}}}}});
  }
  // Adds machines that want no update yet.
  void content(const std::vector<std::string>& names) {
    for (const std::string& name : names) machine(name, {.target = ""});
  }
  void want(const std::string& version, const std::vector<std::string>& names = {}) {
    for (const auto& each : machines)
      if (names.empty() || std::ranges::find(names, each->node()) != names.end()) each->want(version);
  }
  // For each drain that began, in their order: how many of these nodes had come back from their update before.
  std::vector<std::size_t> begun_after(const std::string& prefix = "n") const {
    std::vector<std::size_t> begun;
    std::size_t back = 0;
    std::map<std::string, std::string> last;
    for (const auto& [name, state] : checks.states) {
      const std::string before = std::exchange(last[name], state);
      if (!name.starts_with(prefix)) continue;
      back += before == "soaking" && state == "idle";
      if (before == "waiting" && state == "draining") begun.push_back(back);
    }
    return begun;
  }
  // The nodes whose drains began, in their order.
  std::vector<std::string> drained() const {
    std::vector<std::string> drained;
    std::map<std::string, std::string> last;
    for (const auto& [name, state] : checks.states)
      if (std::exchange(last[name], state) == "waiting" && state == "draining") drained.push_back(name);
    return drained;
  }
  void expect_halted_at(const std::string& broken, const std::string& numbers) {
    EXPECT_EQ(state(broken), "degraded") << story();
    for (const auto& each : machines) {
      if (state(each->node()) != "waiting") continue;
      EXPECT_EQ(reason(each->node()), "WaitingForWave") << story();
      EXPECT_EQ(message(each->node()),
                numbers + ", " + broken + " is degraded (RolledBack): the roll-out waits until it is well");
      EXPECT_THAT(states_of(each->node()), Not(Contains("draining")));
    }
  }
};

// P6
TEST_F(InWaves, EachWaveWaitsForTheOneBefore) {
  for (const char* name : {"n1", "n2", "n3", "n4", "n5", "n6"}) machine(name);
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
  EXPECT_THAT(begun_after(), ElementsAre(0, 1, 1, 3, 3, 3)) << story();
  EXPECT_LT(elapsed(), 15min) << "nobody sleeps longer than necessary";
}

TEST_F(InWaves, TheSoakTimeIsAPartOfTheWave) {
  options.times.soak = 20min;
  in_waves("1,1");
  for (const char* name : {"n1", "n2", "n3"}) machine(name);
  run_fleet();
  EXPECT_THAT(begun_after(), ElementsAre(0, 1, 2)) << story();
  EXPECT_GT(elapsed(), 60min);
}

// P6: max-unavailable limits a wave that is larger.
TEST_F(InWaves, TheSmallerNumberWins) {
  limit = 1;
  in_waves("1,3");
  for (const char* name : {"n1", "n2", "n3", "n4"}) machine(name);
  run_fleet();
  EXPECT_THAT(begun_after(), ElementsAre(0, 1, 2, 3)) << story();
}

TEST_F(InWaves, TheCheckFindsNodesThatDoNotWait) {
  slots.ramp.clear();
  for (const char* name : {"n1", "n2", "n3"}) machine(name);
  run_all(6h, true);
  EXPECT_THAT(checks.violations, Contains(HasSubstr("so the wave allows 1"))) << story();
}

TEST_F(InWaves, ANodeThatRollsBackHaltsTheRollOutUntilItIsRepaired) {
  content({"n1", "n2", "n3", "n4"});
  machines[0]->plan().rolls_back = true;
  after(1min, [&] { want("1.1", {"n1"}); });
  after(30min, [&] { want("1.1"); });
  after(3h, [&] {
    expect_halted_at("n1", "wave 1 of 2 of version 1.1: 0 of 1 node has come back well");
    machines[0]->repair();
    annotate("n1", "haulout.dev/request", "reboot");
  });
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
  EXPECT_THAT(begun_after(), ElementsAre(0, 0, 1, 1, 3)) << story();
  const std::vector<std::string> order = drained();
  EXPECT_THAT(std::vector(order.begin(), order.begin() + 2), Each("n1")) << "the failed node tries again first";
}

// P6: a person requests another attempt of the node that has failed, and a gate of that node is closed. The version is
// not proved yet, so no other node takes the place of the failed one.
TEST_F(InWaves, ANodeThatHasFailedKeepsItsPlaceUntilItTriesAgain) {
  bool closed = false;
  gates = [this, &closed](k8s::Client&, const std::string& name) {
    return std::make_unique<ScriptedGates>(clock, [&closed, name](const agent::GateQuestion&) {
      if (!closed || name != "n1") return agent::GateAnswer{};
      return agent::GateAnswer{{{.name = "window",
                                 .verdict = agent::Gate::Verdict::closed,
                                 .reason = "OutsideWindow",
                                 .message = "the window is closed"}}};
    });
  };
  content({"n1", "n2", "n3"});
  machines[0]->plan().rolls_back = true;
  after(1min, [&] { want("1.1", {"n1"}); });
  after(30min, [&] { want("1.1"); });
  after(2h, [&] {
    expect_halted_at("n1", "wave 1 of 2 of version 1.1: 0 of 1 node has come back well");
    closed = true;
    machines[0]->repair();
    annotate("n1", "haulout.dev/request", "reboot");
  });
  after(4h, [&] {
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_THAT(drained(), ElementsAre("n1"));
    EXPECT_EQ(message("n2"),
              "wave 1 of 2 of version 1.1: 0 of 1 node has come back well, n1 has failed with this version, and has "
              "not run well with it since: the roll-out waits until it is well");
    closed = false;
  });
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
  EXPECT_THAT(begun_after(), ElementsAre(0, 0, Ge(1u), Ge(1u))) << story();
  EXPECT_EQ(drained().at(1), "n1");
}

// The machine of the canary never boots again, so it has no agent that could tell anything. The message names the node
// all the same, and says how to go on without it.
TEST_F(InWaves, AMachineThatNeverBootsAgainIsNamed) {
  content({"n1", "n2"});
  machines[0]->plan().stays_down = true;
  after(1min, [&] { want("1.1", {"n1"}); });
  after(3min, [&] { want("1.1"); });
  after(4min, [&] { EXPECT_THAT(message("n2"), HasSubstr("1 is being updated (n1)")) << "it may be booting"; });
  after(2h, [&] {
    EXPECT_EQ(state("n1"), "rebooting") << story();
    EXPECT_EQ(reason("n2"), "WaitingForWave");
    EXPECT_EQ(message("n2"),
              "wave 1 of 2 of version 1.1: 0 of 1 node has come back well, n1 is not Ready (rebooting since "
              "2026-01-01 00:01 UTC): the roll-out waits until it is well; if a machine is lost, delete its Node");
    machines[0]->replace();
    machines[0]->want("");
  });
  run_fleet();
  expect_updated(*machines[1]);
}

// The reboot of the canary has failed, and then its version is withdrawn for it: the node needs nothing any more. It is
// idle, so no person looks at it, and it will never run the version. The others go on.
TEST_F(InWaves, ANodeThatNeedsNothingAnyMoreHoldsNobodyUp) {
  content({"n1", "n2", "n3"});
  machines[0]->plan().ignored_reboots = 9;
  after(1min, [&] { want("1.1", {"n1"}); });
  after(1h, [&] { want("1.1", {"n2", "n3"}); });
  after(2h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_EQ(reason("n2"), "WaitingForWave");
    machines[0]->want("");
  });
  run_fleet();
  EXPECT_EQ(state("n1"), "idle") << story();
  EXPECT_EQ(machines[0]->version(), "1.0");
  expect_updated(*machines[1]);
  expect_updated(*machines[2]);
}

// A node that has rolled the version back holds the others up although it needs nothing, because the version is offered
// to it no more: it is the version that has failed.
TEST_F(InWaves, ANodeThatHasRolledBackHoldsTheOthersUpAlsoIfItNeedsNothing) {
  content({"n1", "n2"});
  machines[0]->plan().rolls_back = true;
  after(1min, [&] { want("1.1", {"n1"}); });
  after(30min, [&] { want("", {"n1"}); });
  after(1h, [&] {
    annotate("n1", "haulout.dev/request", "reboot");  // ends the state degraded, and boots the old version
    machines[0]->plan().rolls_back = false;
  });
  after(2h, [&] { want("1.1", {"n2"}); });
  run_for(4h);
  EXPECT_EQ(state("n1"), "idle") << story();
  EXPECT_EQ(reason("n2"), "WaitingForWave");
  EXPECT_THAT(message("n2"), HasSubstr("n1 has failed with this version"));
}

// --halt-after: a failed node keeps its place, but the others go on until too many have failed.
TEST_F(InWaves, ARollOutHaltsAtTheNumberOfFailedNodes) {
  limit = 4;
  halted_at(2);
  content({"n1", "n2", "n3", "n4", "n5", "n6"});
  for (std::size_t i : {0u, 2u}) machines[i]->plan().rolls_back = true;
  after(1min, [&] { want("1.1", {"n1"}); });
  after(30min, [&] { want("1.1", {"n2"}); });
  after(1h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    expect_updated(*machines[1]);
    want("1.1", {"n3"});
  });
  after(90min, [&] { want("1.1", {"n4", "n5"}); });
  after(3h, [&] {
    EXPECT_EQ(state("n3"), "degraded") << story();
    for (const char* name : {"n4", "n5"}) {
      EXPECT_EQ(state(name), "waiting") << story();
      EXPECT_EQ(reason(name), "RollOutHalted");
      EXPECT_EQ(message(name),
                "the roll-out of version 1.1 is halted, because 2 nodes have failed with it or are not well "
                "(halt-after 2): n1 is "
                "degraded (RolledBack), n3 is degraded (RolledBack); repair them and request their reboot, or withdraw "
                "the version");
    }
    machines[2]->repair();
    annotate("n3", "haulout.dev/request", "reboot");
  });
  run_fleet();
  EXPECT_EQ(state("n1"), "degraded") << story();
  for (std::size_t i : {1u, 2u, 3u, 4u}) expect_updated(*machines[i]);
}

// P6: the failed node tries again, and until it has run well the roll-out stays halted.
TEST_F(InWaves, AHaltLastsUntilAFailedNodeHasRunWell) {
  in_waves("");
  halted_at(1);
  content({"n1", "n2"});
  machines[0]->plan().rolls_back = true;
  after(1min, [&] { want("1.1", {"n1"}); });
  after(1h, [&] { want("1.1", {"n2"}); });
  after(2h, [&] {
    EXPECT_EQ(reason("n2"), "RollOutHalted") << story();
    machines[0]->repair();
    machines[0]->plan().hooks = {"before-drain/wait"};
    machines[0]->plan().hook_takes = 4min;
    annotate("n1", "haulout.dev/request", "reboot");
  });
  after(2h + 2min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    EXPECT_EQ(reason("n2"), "RollOutHalted");
  });
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
  EXPECT_THAT(drained(), ElementsAre("n1", "n1", "n2")) << story();
}

TEST_F(InWaves, TheCheckFindsNodesThatGoOnDuringAHalt) {
  in_waves("");
  checks.halt_after = 1;
  options.ramp = true;
  content({"n1", "n2"});
  machines[0]->plan().rolls_back = true;
  after(1min, [&] { want("1.1", {"n1"}); });
  after(1h, [&] { want("1.1", {"n2"}); });
  run_all(6h, true);
  EXPECT_THAT(checks.violations, Contains(HasSubstr("1 nodes have failed with it, and the roll-out halts at 1")));
}

TEST_F(InWaves, AFailureInALaterWaveHaltsIt) {
  content({"n1", "n2", "n3", "n4"});
  machines[1]->plan().rolls_back = true;
  after(1min, [&] { want("1.1", {"n1"}); });
  after(30min, [&] { want("1.1", {"n2"}); });
  after(1h, [&] { want("1.1", {"n3"}); });
  after(2h, [&] { want("1.1"); });
  after(4h, [&] {
    EXPECT_EQ(state("n3"), "idle") << "there was a place left in wave 2";
    expect_halted_at("n2", "wave 2 of 2 of version 1.1: 2 of 3 nodes have come back well");
    EXPECT_EQ(state("n4"), "waiting");
  });
  run_for(5h);
  EXPECT_EQ(state("n4"), "waiting") << story();
}

// A person repairs the machine and removes its record. Then the node is no part of the roll-out any more, and its place
// in the wave is free.
TEST_F(InWaves, ARecordThatIsRemovedFreesThePlaceInTheWave) {
  content({"n1", "n2", "n3"});
  machines[0]->plan().rolls_back = true;
  after(1min, [&] { want("1.1", {"n1"}); });
  after(30min, [&] { want("1.1"); });
  after(2h, [&] {
    expect_halted_at("n1", "wave 1 of 2 of version 1.1: 0 of 1 node has come back well");
    machines[0]->repair();
    machines[0]->want("");
    uncordon("n1");
    annotate("n1", "haulout.dev/record", nullptr);
  });
  run_fleet();
  EXPECT_EQ(machines[0]->version(), "1.0");
  EXPECT_EQ(state("n1"), "idle");
  expect_updated(*machines[1]);
  expect_updated(*machines[2]);
  EXPECT_THAT(begun_after(), ElementsAre(0, 0, 1)) << story();
}

// A canary that is not Ready any more halts the roll-out, too, although its update was verified.
TEST_F(InWaves, ANodeThatIsNotReadyIsNotWell) {
  content({"n1", "n2"});
  after(1min, [&] { want("1.1", {"n1"}); });
  after(30min, [&] {
    EXPECT_EQ(state("n1"), "idle") << story();
    machines[0]->plan().stays_down = true;
    machines[0]->power_cycle();
  });
  after(40min, [&] { want("1.1"); });
  after(2h, [&] {
    EXPECT_EQ(reason("n2"), "WaitingForWave") << story();
    EXPECT_THAT(message("n2"), HasSubstr("n1 is not Ready: the roll-out waits until it is well"));
    machines[0]->repair();
  });
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
}

// P7: the agents are killed at each of their first requests, so also in the middle of taking a slot.
TEST_F(InWaves, AgentsThatAreKilledWhileTheyTakeASlotKeepTheOrder) {
  for (const char* name : {"n1", "n2", "n3", "n4"}) {
    Machine& made = machine(name, {.agent_starts = 2s});
    for (std::size_t request = 6; request <= 40; request += 2) made.crash_at({request, request % 4 == 0});
  }
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
  EXPECT_THAT(begun_after(), ElementsAre(0, 1, 1, 3)) << story();
}

TEST_F(InWaves, EachPoolHasItsOwn) {
  for (const auto& [pool, name] : {std::pair("web", "w1"), std::pair("web", "w2"), std::pair("web", "w3"),
                                   std::pair("db", "d1"), std::pair("db", "d2"), std::pair("db", "d3")}) {
    slots.grouping.pool = pool;
    options.pool = [pool](const k8s::Node&) { return std::string(pool); };
    checks.pools[name] = pool;
    machine(name, {.rolls_back = pool == std::string("db")});
  }
  run_for(3h);
  EXPECT_THAT(begun_after("w"), ElementsAre(0, 1, 1)) << story();
  EXPECT_THAT(begun_after("d"), ElementsAre(0)) << story();
}

// A node drains for 1.1 in the second wave when 1.2 is released. It would boot 1.2, whose first wave has one node.
TEST_F(InWaves, ANewVersionBeginsItsOwnWaves) {
  content({"n1", "n2", "n3", "n4"});
  for (std::size_t i : {1u, 2u}) {
    machines[i]->plan().hooks = {"before-drain/wait"};
    machines[i]->plan().hook_takes = 4min;
  }
  after(1min, [&] { want("1.1", {"n1"}); });
  after(30min, [&] { want("1.1", {"n2", "n3"}); });
  after(32min, [&] {
    EXPECT_EQ(state("n2"), "draining") << story();
    EXPECT_EQ(state("n3"), "draining") << story();
    want("1.2");
  });
  after(33min, [&] { EXPECT_THAT(message("n4"), HasSubstr("of version 1.2")) << story(); });
  run_fleet();
  for (const auto& each : machines) {
    EXPECT_EQ(each->version(), "1.2") << story();
    EXPECT_EQ(state(each->node()), "idle");
  }
  EXPECT_EQ(machines[1]->boots() + machines[2]->boots(), 2u) << "no boot for 1.1" << story();
  EXPECT_THAT(lines, Contains(HasSubstr("the update leads to version 1.2 now, but the slot was taken for 1.1")));
}

// Answers after 5 s once the node has its slot. Before that, calls `with_turn`.
class SlowGates final : public agent::GateKeeper {
 public:
  SlowGates(Clock& clock, std::function<void()> with_turn) : clock_(clock), with_turn_(std::move(with_turn)) {}
  boost::asio::awaitable<agent::GateAnswer> ask(agent::GateQuestion question, TimePoint) override {
    if (question.when == agent::GateQuestion::When::with_turn) {
      with_turn_();
      co_await clock_.sleep_until(clock_.now() + 5s);
    }
    co_return agent::GateAnswer{};
  }
  boost::asio::awaitable<void> changed() override { co_await clock_.sleep_until(TimePoint::max()); }

 private:
  Clock& clock_;
  std::function<void()> with_turn_;
};

// The slot was taken for 1.1, and 1.2 is released before the drain begins.
TEST_F(InWaves, AVersionThatChangesWhileTheSlotIsTakenGivesItBack) {
  gates = [this](k8s::Client&, const std::string&) {
    return std::make_unique<SlowGates>(clock, [this] {
      if (machines[0]->plan().target == "1.1") want("1.2");
    });
  };
  Machine& n1 = machine("n1");
  run_fleet();
  EXPECT_EQ(n1.version(), "1.2");
  const auto states = states_of("n1");
  EXPECT_EQ(std::ranges::count(states, "waiting"), 2) << story();
  EXPECT_EQ(std::ranges::count(states, "draining"), 1) << "no drain for 1.1" << story();
}

// The image of 1.1 is in place. The slot was taken for 1.2, which was offered, but is withdrawn during the drain. The
// node would boot 1.1 without the waves of 1.1.
TEST_F(InWaves, AnOfferThatIsWithdrawnGivesTheSlotBack) {
  MachinePlan plan;
  plan.updates.on = true;
  plan.updates.image = "1.2";
  plan.updates.waiting = {"1.0 to 1.2"};
  plan.hooks = {"before-drain/wait"};
  plan.hook_takes = 4min;
  Machine& n1 = machine("n1", plan);
  after(2min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    n1.plan().updates.waiting.clear();
    n1.updates().add({});
  });
  run_fleet();
  EXPECT_EQ(n1.version(), "1.1");
  EXPECT_THAT(lines, Contains(HasSubstr("the update leads to version 1.1 now, but the slot was taken for 1.2")));
}

// The image of 1.1 is installed, and something blocks the reboot while 1.2 is offered. The reboot leads to 1.1 all the
// same, so the node need not be drained twice.
TEST_F(InWaves, AnOfferAfterTheInstallationDoesNotGiveTheSlotBack) {
  MachinePlan plan{.target = ""};
  plan.updates.on = true;
  plan.updates.image = "1.1";
  plan.updates.waiting = {"1.0 to 1.1"};
  Machine& n1 = machine("n1", plan);
  after(1min, [&] {
    EXPECT_EQ(state("n1"), "updating") << story();
    n1.block("apt");
  });
  after(30min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    n1.plan().updates.image = "1.2";
    n1.plan().updates.waiting = {"1.1 to 1.2"};
    n1.updates().add({});
  });
  after(1h, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    n1.block("");
  });
  run_fleet();
  EXPECT_EQ(n1.version(), "1.2");
  EXPECT_EQ(n1.boots(), 2u);
  EXPECT_THAT(lines, Not(Contains(HasSubstr("the update leads to")))) << story();
}

// A node that failed with an older version keeps its slot, and does not hold the newer version up.
TEST_F(InWaves, AFailureOfAnOlderVersionDoesNotHoldUpTheNext) {
  content({"n1", "n2", "n3"});
  machines[0]->plan().rolls_back = true;
  after(1min, [&] { want("1.1", {"n1"}); });
  after(1h, [&] { want("1.2", {"n2", "n3"}); });
  run_for(3h);
  EXPECT_EQ(state("n1"), "degraded") << story();
  for (std::size_t i : {1u, 2u}) {
    EXPECT_EQ(machines[i]->version(), "1.2") << story();
    EXPECT_EQ(state(machines[i]->node()), "idle");
  }
  EXPECT_THAT(begun_after(), ElementsAre(0, 0, 1)) << story();
}

// The number of a snapshot means nothing on another node, which may have come back well with one of the same number.
TEST_F(InWaves, VersionsThatNodesDoNotShareHaveNoWaves) {
  checks.ramp.clear();
  for (const char* name : {"n1", "n2", "n3"}) machine(name, {.own_versions = true});
  run_fleet();
  EXPECT_THAT(begun_after(), ElementsAre(0, 0, 0)) << story();
  for (const auto& each : machines)
    EXPECT_THAT(lines, Contains(HasSubstr(each->node() + " warns: RampWithoutVersion")));
}

// Package updates have no version.
TEST_F(InWaves, AnUpdateWithoutAVersionIsWarnedAbout) {
  for (const char* name : {"n1", "n2"}) {
    MachinePlan plan{.target = ""};
    plan.updates.on = true;
    plan.updates.waiting = {"openssl 3.0 to 3.1"};
    plan.updates.need_reboot = false;
    machine(name, plan);
  }
  run_fleet();
  EXPECT_THAT(lines, Contains(HasSubstr("n1 warns: RampWithoutVersion ramp and halt-after have no effect")));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("WaitingForWave")))) << story();
}

}  // namespace
}  // namespace haulout::fleet
