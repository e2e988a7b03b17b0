// A node that is Ready, but not ready for its pods: taints of node-readiness-controller, and conditions that the user
// names.
#include "tests/fleet/fleet.hpp"
#include "tests/fleet/scripted_gates.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Readiness : Fleet {
  std::string reason(const std::string& name) const { return label(name, "haulout.dev/reason"); }
  std::string message(const std::string& name) const { return sim::annotation(node(name), "haulout.dev/message"); }
  // Runs the action once, as soon as n1 shows this state.
  void once_in(const std::string& wanted, std::function<void()> action) {
    cluster.on_change([this, wanted, action = std::move(action), done = false](const sim::Change& change) mutable {
      if (done || change.key.resource != "nodes" || state("n1") != wanted) return;
      done = true;
      cluster.after(0s, action);
    });
  }
  std::vector<std::string> states() const { return states_of("n1"); }
  void annotate(const std::string& key, Json value) {
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{key, std::move(value)}}}}}});
  }
  // The nodes need the condition NetworkReady. With `closed`, no attempt begins.
  void needs_condition_and_window() {
    options.conditions = {{.type = "NetworkReady"}};
    gates = [this](k8s::Client&, const std::string&) {
      return std::make_unique<ScriptedGates>(clock, [this](const agent::GateQuestion& question) {
        if (!closed || question.when == agent::GateQuestion::When::under_way) return agent::GateAnswer{};
        return agent::GateAnswer{{{.name = "window",
                                   .verdict = agent::Gate::Verdict::closed,
                                   .reason = "OutsideWindow",
                                   .message = "outside of the window"}}};
      });
    };
  }
  void request_reboot(Json value = "reboot") { annotate("haulout.dev/request", std::move(value)); }
  bool closed = false;
};

TEST_F(Readiness, ANodeWithATaintKeepsItsCordonAndItsSlot) {
  machine("n1", {.readiness_takes = 5min});
  Machine& n2 = machine("n2", {.target = ""});
  after(1min, [&] { n2.want("1.1"); });
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "verifying") << story();
    EXPECT_EQ(reason("n1"), "ConditionNotMet");
    EXPECT_EQ(message("n1"), "the Node has the taint readiness.k8s.io/NetworkReady");
    EXPECT_TRUE(unschedulable("n1"));
    EXPECT_EQ(n2.boots(), 0u);
  });
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
}

// The taint comes after the agent has found its node well, and before the answer to its last look.
TEST_F(Readiness, ATaintThatComesLateIsWaitedFor) {
  machine("n1", {.boot_takes = 1min});
  bool tainted = false;
  cluster.server().intercept([&](const sim::Call& call, const sim::AuditEntry&) -> std::optional<http::Response> {
    if (call.verb == "get" && call.info && call.info->resource == "nodes" && state("n1") == "verifying" &&
        !std::exchange(tainted, true))
      cluster.taint("n1", readiness_taint);
    return std::nullopt;
  });
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "verifying") << story();
    EXPECT_EQ(reason("n1"), "ConditionNotMet");
    EXPECT_TRUE(unschedulable("n1"));
    cluster.untaint("n1", readiness_taint);
  });
  run_fleet();
  EXPECT_TRUE(tainted);
  expect_updated(*machines[0]);
}

// P8: the agent has lost the permission to read its Node, so it cannot check the node before it goes on. The Node says
// so.
TEST_F(Readiness, ANodeThatCannotBeReadBeforeTheUncordonIsNotWaitedForSilently) {
  machine("n1", {.boot_takes = 1min});
  once_in("verifying", [&] { cluster.forbid("get", "nodes"); });
  after(8min, [&] {
    EXPECT_EQ(state("n1"), "verifying") << story();
    EXPECT_EQ(reason("n1"), "ApiUnavailable");
    EXPECT_THAT(message("n1"), HasSubstr("cannot read its Node once more"));
    EXPECT_TRUE(unschedulable("n1"));
    cluster.permit("get", "nodes");
  });
  run_fleet();
  expect_updated(*machines[0]);
}

TEST_F(Readiness, ANodeThatCannotBeReadBeforeTheReleaseIsNotWaitedForSilently) {
  options.times.soak = 2min;
  machine("n1");
  once_in("soaking", [&] { cluster.forbid("get", "nodes"); });
  after(10min, [&] {
    EXPECT_EQ(state("n1"), "soaking") << story();
    EXPECT_EQ(reason("n1"), "ApiUnavailable");
    EXPECT_EQ(slots_held(), 1u);
    cluster.permit("get", "nodes");
  });
  run_fleet();
  expect_updated(*machines[0]);
}

// The watch delivers nothing, so only the last look before the uncordon shows the taint.
TEST_F(Readiness, ATaintThatTheWatchDoesNotShowIsSeenBeforeTheUncordon) {
  machine("n1", {.boot_takes = 1min});
  once_in("verifying", [&] {
    cluster.silence_watches();
    cluster.taint("n1", readiness_taint);
  });
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "verifying") << story();
    EXPECT_EQ(reason("n1"), "ConditionNotMet");
    cluster.untaint("n1", readiness_taint);
  });
  run_fleet();
  expect_updated(*machines[0]);
}

TEST_F(Readiness, ANodeThatIsTaintedDuringItsSoakTimeKeepsItsSlotAsLongAsItTakes) {
  options.times.soak = 10min;
  machine("n1");
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "soaking") << story();
    cluster.taint("n1", readiness_taint);
  });
  after(5h, [&] {
    EXPECT_EQ(state("n1"), "soaking") << story();
    EXPECT_EQ(reason("n1"), "ConditionNotMet");
    EXPECT_THAT(message("n1"), AllOf(HasSubstr("keeps its slot"), HasSubstr("readiness.k8s.io/NetworkReady")));
    EXPECT_EQ(slots_held(), 1u);
    cluster.untaint("n1", readiness_taint);
  });
  run_fleet(7h);
  expect_updated(*machines[0]);
  EXPECT_EQ(slots_held(), 0u);
}

TEST_F(Readiness, ATaintThatTheWatchDoesNotShowIsSeenBeforeTheSlotIsReleased) {
  options.times.soak = 2min;
  machine("n1");
  once_in("soaking", [&] {
    cluster.silence_watches();
    cluster.taint("n1", readiness_taint);
  });
  after(10min, [&] {
    EXPECT_EQ(state("n1"), "soaking") << story();
    EXPECT_EQ(reason("n1"), "ConditionNotMet");
    cluster.untaint("n1", readiness_taint);
  });
  run_fleet();
  expect_updated(*machines[0]);
}

// The hook takes its time, and meanwhile the node is tainted.
TEST_F(Readiness, ANodeThatIsTaintedDuringTheHookBeforeTheReleaseKeepsItsSlot) {
  Machine& n1 = machine("n1", {.hooks = {"before-release/10-a"}, .hook_takes = 1min});
  n1.on_hook = [&](const std::string&) { cluster.taint("n1", readiness_taint); };
  after(15min, [&] {
    EXPECT_EQ(state("n1"), "soaking") << story();
    EXPECT_EQ(reason("n1"), "ConditionNotMet");
    EXPECT_EQ(slots_held(), 1u);
    cluster.untaint("n1", readiness_taint);
  });
  run_fleet();
  expect_updated(n1);
  EXPECT_THAT(n1.hooks_run, ElementsAre("before-release/10-a"));
}

// The node was not ready before the update either. That is no reason to hold up the fleet.
TEST_F(Readiness, ATaintFromBeforeTheUpdateIsNotWaitedFor) {
  options.times.soak = 1min;
  Machine& n1 = machine("n1");
  cluster.taint("n1", old_readiness_taint);
  after(2min, [&] { n1.kill_agent(); });  // the next agent knows it from the record
  run_fleet();
  expect_updated(n1);
  EXPECT_THAT(states(), Not(Contains("degraded"))) << story();
  EXPECT_THAT(story(), Not(HasSubstr("ConditionNotMet")));
}

// An earlier agent has begun the attempt, and its record knows no readiness taints. Those that the node has before its
// boot are older ones.
TEST_F(Readiness, ATaintFromBeforeAnUpdateThatAnEarlierAgentBeganIsNotWaitedFor) {
  options.times.soak = 1min;
  Machine& n1 = machine("n1");
  add(a_workload("Deployment", "web", 2, {{"terminationGracePeriodSeconds", 30}}));
  cluster.taint("n1", old_readiness_taint, "PreferNoSchedule");
  bool rewritten = false;
  once_in("draining", [&] {
    Json record = Json::parse(sim::annotation(node("n1"), "haulout.dev/record"));
    rewritten = record.erase("oldTaints") > 0;
    n1.kill_agent();
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"haulout.dev/record", record.dump()}}}}}});
  });
  run_fleet();
  EXPECT_TRUE(rewritten);
  expect_updated(n1);
  EXPECT_THAT(states(), Not(Contains("degraded"))) << story();
  EXPECT_THAT(story(), Not(HasSubstr("ConditionNotMet")));
}

// P4: the taint has degraded the node. Another reboot on request finds the taint there, but it is not from before the
// update.
TEST_F(Readiness, ATaintThatHasDegradedTheNodeIsNoOlderOne) {
  Machine& n1 = machine("n1", {.readiness_takes = 1000h});
  after(30min, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"haulout.dev/request", "reboot"}}}}}});
  });
  after(70min, [&] {
    EXPECT_EQ(n1.boots(), 2u) << story();
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_EQ(reason("n1"), "ConditionNotMet");
    EXPECT_EQ(slots_held(), 1u);
    cluster.untaint("n1", readiness_taint);
  });
  run_for(80min);
  expect_updated(n1);
}

TEST_F(Readiness, ANodeWithoutItsConditionIsDegradedUntilItHasIt) {
  options.conditions = {{.type = "NetworkReady"}, {.type = "KernelDeadlock", .status = "False"}};
  machine("n1");
  cluster.set_node_condition("n1", "KernelDeadlock", "False");
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "verifying") << story();
    EXPECT_EQ(reason("n1"), "ConditionNotMet");
    EXPECT_EQ(message("n1"), "the Node has no condition NetworkReady (--verify-condition: True)");
  });
  after(30min, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_EQ(reason("n1"), "ConditionNotMet");
    EXPECT_EQ(slots_held(), 1u);
    cluster.set_node_condition("n1", "NetworkReady", "True");
  });
  run_fleet();
  expect_updated(*machines[0]);
}

// P4: nothing but the cordon keeps pods off a node that lacks a condition. A person requests another reboot, which must
// wait for its window.
TEST_F(Readiness, ANodeWithoutItsConditionStaysCordonedUntilItsNextAttempt) {
  needs_condition_and_window();
  Machine& n1 = machine("n1");
  after(30min, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    closed = true;
    request_reboot();
  });
  after(2h, [&] {
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_EQ(reason("n1"), "OutsideWindow");
    EXPECT_TRUE(unschedulable("n1"));
    closed = false;
  });
  after(2h + 30min, [&] {
    EXPECT_EQ(n1.boots(), 2u) << story();
    EXPECT_TRUE(unschedulable("n1"));
    cluster.set_node_condition("n1", "NetworkReady", "True");
  });
  run_for(3h);
  expect_updated(n1);
  EXPECT_FALSE(unschedulable("n1")) << "the cordon of the first attempt";
}

// Nothing is lacking any more while the node waits for its window, so its cordon ends.
TEST_F(Readiness, ANodeThatGetsItsConditionBeforeItsNextAttemptIsUncordoned) {
  needs_condition_and_window();
  machine("n1");
  after(30min, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    closed = true;
    request_reboot();
  });
  after(1h, [&] {
    EXPECT_TRUE(unschedulable("n1"));
    cluster.set_node_condition("n1", "NetworkReady", "True");
  });
  after(1h + 5min, [&] {
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_FALSE(unschedulable("n1"));
  });
  run_for(2h);
}

// The person withdraws the request, but the node lacks its condition still.
TEST_F(Readiness, ANodeWithoutItsConditionStaysCordonedWhenTheRequestIsWithdrawn) {
  needs_condition_and_window();
  machine("n1");
  after(30min, [&] {
    closed = true;
    request_reboot();
  });
  after(1h, [&] {
    EXPECT_EQ(state("n1"), "pending") << story();
    request_reboot(nullptr);
  });
  after(1h + 10min, [&] {
    EXPECT_EQ(reason("n1"), "ConditionNotMet") << story();
    EXPECT_TRUE(unschedulable("n1"));
    cluster.set_node_condition("n1", "NetworkReady", "True");
  });
  run_for(1h + 20min);
  EXPECT_EQ(state("n1"), "idle");
  EXPECT_FALSE(unschedulable("n1"));
}

// The hook after the boot may be what makes the node ready, for example because it loads a driver.
TEST_F(Readiness, TheHookAfterTheBootRunsBeforeTheWait) {
  Machine& n1 = machine("n1", {.readiness_takes = 1000h, .hooks = {"after-boot/10-driver"}});
  n1.on_hook = [&](const std::string&) { cluster.untaint("n1", readiness_taint); };
  run_fleet(10min);
  expect_updated(n1);
  EXPECT_THAT(n1.hooks_run, ElementsAre("after-boot/10-driver"));
}

// The hook takes longer than the time limit of the verification, and the taint ends a moment after the hook.
TEST_F(Readiness, TheTimeOfTheHookDoesNotCount) {
  options.hooks.limit = 1h;
  Machine& n1 = machine("n1", {.readiness_takes = 21min, .hooks = {"after-boot/10-driver"}, .hook_takes = 20min});
  run_fleet();
  expect_updated(n1);
  EXPECT_THAT(states(), Not(Contains("degraded"))) << story();
}

// P7: an agent that is restarted during the hook knows nothing of the time before.
TEST_F(Readiness, TheTimeOfTheHookDoesNotCountForTheNextAgentEither) {
  options.hooks.limit = 1h;
  Machine& n1 = machine("n1", {.readiness_takes = 50min, .hooks = {"after-boot/10-driver"}, .hook_takes = 25min});
  after(20min, [&] {
    EXPECT_EQ(reason("n1"), "WaitingForHook") << story();
    n1.kill_agent();
  });
  run_fleet();
  expect_updated(n1);
  EXPECT_THAT(states(), Not(Contains("degraded"))) << story();
}

TEST_F(Readiness, TheTimeOfAHookThatIsAskedDoesNotCountForTheNextAgentEither) {
  Machine& n1 = machine("n1", {.readiness_takes = 45min});
  annotate("hook.haulout.dev/after-boot.net", "limit=1h");
  after(20min, [&] {
    EXPECT_EQ(reason("n1"), "WaitingForHook") << story();
    n1.kill_agent();
  });
  after(40min, [&] {
    EXPECT_EQ(state("n1"), "verifying") << story();
    annotate("hook-done.haulout.dev/after-boot.net", sim::annotation(node("n1"), "haulout.dev/hook"));
  });
  run_fleet();
  expect_updated(n1);
  EXPECT_THAT(states(), Not(Contains("degraded"))) << story();
}

// The node became Ready too late, so the hook has not run. Nothing would ever end the taint if the hook waited for it.
TEST_F(Readiness, ADegradedNodeRunsItsHookBeforeTheWait) {
  Machine& n1 = machine("n1", {.boot_takes = 30min, .readiness_takes = 1000h, .hooks = {"after-boot/10-driver"}});
  n1.on_hook = [&](const std::string&) { cluster.untaint("n1", readiness_taint); };
  after(25min, [&] { EXPECT_EQ(state("n1"), "degraded") << story(); });
  run_for(45min);
  expect_updated(n1);
}

}  // namespace
}  // namespace haulout::fleet
