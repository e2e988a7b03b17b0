// What an agent waits for or cannot do is shown as a reason on its Node, or reported as a warning. One test for each
// reason that no other file tests.
#include "tests/fleet/fleet.hpp"
#include "tests/worlds/faults.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;

struct Reasons : Fleet {
  Reasons() {
    way = [this] { return &faults; };
  }
  // A machine whose agent's states and reasons are kept in `told`.
  Machine& telling(MachinePlan plan = {}) {
    Machine& n1 = machine("n1", std::move(plan));
    n1.on_told = [this](const agent::Status& status) {
      told.push_back(std::string(to_string(status.state)) + " " + status.reason);
    };
    return n1;
  }
  // As soon as `when` returns true, the next `count` requests of this verb for Nodes fail.
  void fail_once(std::function<bool()> when, const char* verb, std::size_t count) {
    cluster.on_change([=, this, done = false](const sim::Change&) mutable {
      if (done || !when()) return;
      done = true;
      faults.add({.verb = verb,
                  .resource = "nodes",
                  .count = count,
                  .fault = {.kind = sim::FaultKind::server_error, .code = 500}});
    });
  }
  void web() { add(a_workload("Deployment", "web", 2, {{"terminationGracePeriodSeconds", 5}})); }
  std::string reason() const { return label("n1", "haulout.dev/reason"); }

  sim::FaultTransport faults{cluster.api(), clock, world_rng};
  std::vector<std::string> told;
};

// A node that cannot reboot takes no slot and is not cordoned, so that no pod is evicted in vain.
TEST_F(Reasons, CannotReboot) {
  Machine& n1 = machine("n1");
  web();
  n1.block("dpkg");
  after(2min, [&] {
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_EQ(reason(), "CannotReboot");
    EXPECT_FALSE(unschedulable("n1"));
    EXPECT_EQ(slots_held(), 0u);
    EXPECT_EQ(evictions(), 0u);
    n1.block("");
  });
  run_fleet();
  expect_updated(n1);
}

// The host names a reboot method by what it would do (a kexec, or an ordinary reboot), and after the request by what it
// has done. The Node shows both.
TEST_F(Reasons, TheKindOfReboot) {
  Machine& n1 = machine("n1", {.methods = {"kexec into the loaded kernel"}, .late_by = 30s});
  n1.on_asked = [&] { n1.plan().methods = {"logind instead of kexec"}; };
  std::vector<std::string> messages;
  n1.on_told = [&](const agent::Status& status) {
    if (status.state == agent::State::rebooting) messages.push_back(status.message);
  };
  run_fleet();
  expect_updated(n1);
  EXPECT_THAT(messages, Contains("requesting the reboot (kexec into the loaded kernel)")) << story();
  EXPECT_THAT(messages, Contains("the reboot was requested (logind instead of kexec)"));
}

TEST_F(Reasons, BootNotComplete) {
  Machine& n1 = machine("n1", {.boot_takes = 5min});
  after(4min, [&] {
    EXPECT_EQ(state("n1"), "verifying") << story();
    EXPECT_EQ(reason(), "BootNotComplete");
    EXPECT_TRUE(unschedulable("n1"));
    EXPECT_EQ(slots_held(), 1u);
  });
  run_fleet();
  expect_updated(n1);
}

// If a boot does not complete in time, the node stays cordoned and keeps its slot until the boot is complete.
TEST_F(Reasons, ABootThatDoesNotEndIsNoUpdate) {
  Machine& n1 = machine("n1", {.boot_takes = 1h});
  after(40min, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_EQ(reason(), "BootNotComplete");
    EXPECT_TRUE(unschedulable("n1"));
    EXPECT_EQ(slots_held(), 1u);
  });
  run_for(2h);
  expect_updated(n1);
}

// The machine boots a version that is neither the old one nor the wanted one. The node stays cordoned until the
// operating system wants no other version.
TEST_F(Reasons, VersionUnexpected) {
  Machine& n1 = machine("n1", {.lands_on = "1.5"});
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "verifying") << story();
    EXPECT_EQ(reason(), "VersionUnexpected");
    EXPECT_TRUE(unschedulable("n1"));
  });
  after(30min, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_EQ(reason(), "VersionUnexpected");
    n1.want("1.5");
  });
  run_fleet();
  EXPECT_EQ(state("n1"), "idle") << "the operating system wants no other version\n" << story();
  EXPECT_FALSE(unschedulable("n1"));
  EXPECT_EQ(n1.boots(), 1u);
}

TEST_F(Reasons, ApplyFailed) {
  Machine& n1 = telling({.must_apply = true, .failing_applies = 1});
  web();
  run_fleet();
  expect_updated(n1);
  EXPECT_THAT(told, Contains("pending ApplyFailed")) << story();
}

// The update tool fails each time. The node keeps its slot, so that the fleet does not go on to fail everywhere, and
// serves as before. A person's request is one more attempt.
TEST_F(Reasons, ApplyFailedSoOftenThatAPersonHasToLook) {
  options.update_attempts = 3;
  Machine& n1 = telling({.must_apply = true, .failing_applies = 4});
  web();
  after(12h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_EQ(reason(), "ApplyFailed");
    EXPECT_FALSE(unschedulable("n1"));
    EXPECT_EQ(slots_held(), 1u);
    EXPECT_EQ(n1.plan().failing_applies, 1u) << "it has stopped after three";
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"haulout.dev/request", "reboot"}}}}}});
  });
  run_fleet(48h);
  expect_updated(n1);
}

// The update tool offers another version, about which the failures say nothing.
TEST_F(Reasons, ApplyFailedEndsWhenAnotherVersionIsOffered) {
  Machine& n1 = telling({.must_apply = true, .failing_applies = 3});
  after(12h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    n1.want("1.2");
  });
  run_fleet(48h);
  EXPECT_EQ(state("n1"), "idle") << story();
  EXPECT_EQ(n1.version(), "1.2");
}

TEST_F(Reasons, DrainFailed) {
  options.drain.policy.empty_dir = drain::Treatment::refuse;
  telling();
  PodSpec scratch;
  scratch.spec = {{"volumes", {{{"name", "scratch"}, {"emptyDir", Json::object()}}}}};
  add(a_pod("scratch-0", scratch));
  run_for(10min);
  EXPECT_THAT(told, Contains("pending DrainFailed")) << story();
  EXPECT_EQ(evictions(), 0u);
  EXPECT_FALSE(unschedulable("n1"));
}

TEST_F(Reasons, Uncordoned) {
  telling();
  PodSpec slow;
  slow.grace = 600;
  add(a_pod("slow-0", slow));
  after(1min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    uncordon("n1");
  });
  run_for(3min);
  EXPECT_THAT(told, Contains("pending Uncordoned")) << story();
  EXPECT_FALSE(unschedulable("n1"));
}

TEST_F(Reasons, CannotUncordon) {
  Machine& n1 = telling();
  fail_once([this] { return state("n1") == "uncordoning"; }, "get", 2);
  run_fleet();
  expect_updated(n1);
  EXPECT_THAT(told, Contains("uncordoning CannotUncordon")) << story();
}

TEST_F(Reasons, CannotExclude) {
  options.lb_drain_wait = 1min;
  Machine& n1 = telling();
  web();
  fail_once([this] { return unschedulable("n1"); }, "get", 1);
  run_fleet();
  expect_updated(n1);
  EXPECT_THAT(told, Contains("draining CannotExclude")) << story();
  EXPECT_THAT(told, Contains("draining WaitingForLoadBalancers")) << story();
}

TEST_F(Reasons, CannotRestore) {
  options.lb_drain_wait = 1min;
  Machine& n1 = telling();
  fail_once(
      [this, was = false]() mutable {
        const bool is = unschedulable("n1");
        return std::exchange(was, is) && !is;  // the agent has uncordoned the node and restores the label next
      },
      "patch", 1);
  run_fleet();
  expect_updated(n1);
  EXPECT_THAT(told, Contains(HasSubstr("CannotRestore"))) << story();
}

TEST_F(Reasons, ShuttingDown) {
  Machine& n1 = machine("n1", {.target = "", .delays_shutdown = 30s});
  PodSpec slow;
  slow.grace = 20;
  add(a_pod("slow-0", slow));
  after(5min, [&] { n1.shut_down(); });
  after(5min + 10s, [&] {
    EXPECT_EQ(state("n1"), "idle") << story();
    EXPECT_EQ(reason(), "ShuttingDown");
    EXPECT_TRUE(unschedulable("n1"));
  });
  run_for(15min);
  EXPECT_FALSE(unschedulable("n1"));
}

TEST_F(Reasons, CannotDelayShutdown) {
  machine("n1", {.target = "", .delays_shutdown = 30s, .no_delay = "logind gives no delay lock: Access denied"});
  run_for(5min);
  EXPECT_THAT(story(), HasSubstr("n1 warns: CannotDelayShutdown"));
  EXPECT_THAT(story(), HasSubstr("Access denied"));
}

// The agent cannot write the ready file. The node is ready all the same: its state and its condition show it.
TEST_F(Reasons, ReadyFileFailed) {
  Machine& n1 = machine("n1", {.ready_file_fails = true});
  run_fleet();
  expect_updated(n1);
  EXPECT_THAT(story(), HasSubstr("n1 warns: ReadyFileFailed"));
}

}  // namespace
}  // namespace haulout::fleet
