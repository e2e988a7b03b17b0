// Scenarios that need an agent, named by their numbers in docs/scenarios.md.
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct FleetScenario : Fleet {
  void pods_on_n1(int count, const PodSpec& spec) {
    for (int i = 0; i < count; ++i) add(a_pod("web-" + std::to_string(i), spec));
  }
  std::vector<std::string> evicted() const {
    std::vector<std::string> names;
    for (const auto& entry : cluster.audit())
      if (entry.subresource == "eviction" && entry.status == 201) names.push_back(entry.name);
    return names;
  }
};

// The drain evicts the agent's own pod last. The agent that replaces it continues.
TEST_F(FleetScenario, S51_TheAgentsOwnPodIsOfADeployment) {
  options.drain.own_pod_uid = "own-uid";
  Machine& n1 = machine("n1");
  PodSpec slow;
  slow.grace = 20;
  pods_on_n1(7, slow);
  PodSpec own;
  own.metadata = {{"uid", "own-uid"}};
  add(a_pod("haulout-0", own));
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.name == "haulout-0" && change.type == sim::ChangeType::deleted) n1.kill_agent();
  });
  run_fleet(1h);
  expect_updated(n1);
  ASSERT_EQ(evicted().size(), 8u);
  EXPECT_EQ(evicted().back(), "haulout-0");
  EXPECT_EQ(n1.boots(), 1u);
}

TEST_F(FleetScenario, S52_TheAgentCrashesInTheMiddleOfADrain) {
  Machine& n1 = machine("n1");
  PodSpec slow;
  slow.grace = 30;
  pods_on_n1(10, slow);
  std::string run;
  cluster.server().on_answer([&](const sim::AuditEntry& entry) {
    if (entry.subresource != "eviction" || evicted().size() != 3 || !run.empty()) return;
    run = node("n1")["metadata"]["annotations"]["haulout.dev/cordon"];
    n1.kill_agent();
  });
  after(40s, [&] { EXPECT_EQ(node("n1")["metadata"]["annotations"]["haulout.dev/cordon"], run) << story(); });
  run_fleet(1h);
  expect_updated(n1);
  EXPECT_FALSE(run.empty());
  EXPECT_EQ(n1.boots(), 1u);
}

// Both agents share the slot and the record of their node. Each continues with what the other one has written.
TEST_F(FleetScenario, S53_TwoAgentsForOneNode) {
  Machine& n1 = machine("n1", {.agents = 2});
  Machine& n2 = machine("n2");
  add(a_workload("Deployment", "web", 6, {{"terminationGracePeriodSeconds", 5}}));
  add(a_budget("web", {{"minAvailable", 5}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  run_fleet();
  for (const Machine* each : {&n1, &n2}) {
    expect_updated(*each);
    EXPECT_EQ(each->boots(), 1u) << story();
  }
  EXPECT_EQ(slots_held(), 0u);
}

// The agents disagree about the authority in the record, and each one writes its own again. They must do so with
// pauses.
TEST_F(FleetScenario, S53_TwoAgentsThatDoNotAgree) {
  Machine& n1 = machine("n1", {.target = "", .agents = 2, .agents_differ = true});
  add(a_workload("Deployment", "web", 2, {{"terminationGracePeriodSeconds", 5}}));
  add(a_node("n2"));
  after(30min, [&] {
    EXPECT_LT(n1.requests(), 400u) << story();
    EXPECT_THAT(story(), ::testing::HasSubstr("SecondAgent"));
    n1.want("1.1");
  });
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(n1.boots(), 1u) << story();
}

// The stopped agent writes nothing and takes nothing back. The agent after it continues.
TEST_F(FleetScenario, S70_TheAgentIsToldToStop) {
  for (const Duration when : {500ms, 3000ms, 8000ms, 20000ms, 33000ms}) {
    struct OneNode : FleetScenario {
      void TestBody() override {}
      void go(Duration when) {
        Machine& n1 = machine("n1", {.agent_starts = 2min});
        PodSpec slow;
        slow.grace = 25;
        pods_on_n1(7, slow);
        Json before;
        std::size_t requests = 0;
        after(when, [&] {
          before = node("n1")["metadata"]["annotations"];
          n1.kill_agent();
          requests = n1.requests();
        });
        after(when + 1min, [&] {
          EXPECT_EQ(n1.requests(), requests) << story();
          if (before.contains("haulout.dev/cordon")) EXPECT_TRUE(unschedulable("n1")) << story();
        });
        run_fleet(1h);
        expect_updated(n1);
        EXPECT_EQ(n1.boots(), 1u);
      }
    };
    OneNode().go(when);
    if (HasFailure()) return;
  }
}

TEST_F(FleetScenario, S77_TheApiServerIsAwayForTenMinutesAtTheBoot) {
  Machine& n1 = machine("n1");
  bool seen = false;
  cluster.on_change([&](const sim::Change& change) {
    if (seen || change.key.resource != "nodes" || state("n1") != "verifying") return;
    seen = true;
    cluster.after(0s, [&] { cluster.restart(10min); });
  });
  run_fleet(1h);
  EXPECT_TRUE(seen);
  expect_updated(n1);
  EXPECT_EQ(slots_held(), 0u);
}

// Pods of the DaemonSet are deleted and created while the node is drained and while it is ready. The drain does not
// wait for them.
TEST_F(FleetScenario, ADaemonSetIsRolledOutDuringTheDrain) {
  add(a_workload("DaemonSet", "watcher", 0, {{"tolerations", {{{"operator", "Exists"}}}}}));
  Machine& n1 = machine("n1", {.methods = {}});
  PodSpec slow;
  slow.grace = 60;
  pods_on_n1(2, slow);
  const auto roll = [this] {
    for (const Json& pod : cluster.all("pods"))
      if (sim::text(pod, "/metadata/labels/app") == "watcher")
        cluster.delete_gracefully("pods", "shop", sim::name_of(pod));
  };
  after(20s, roll);
  after(2min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    roll();
  });
  after(3min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    n1.power_cycle();
  });
  run_fleet(1h);
  expect_updated(n1);
  EXPECT_EQ(evicted().size(), 2u);
}

// The collector of logs has its grace period before the reboot, and the agent that is restarted while the node is ready
// does not evict the one that came in its place.
TEST_F(FleetScenario, PodsOfADaemonSetAreEvictedOnceBeforeTheReboot) {
  options.drain.policy.evict_daemon_sets = {k8s::parse_label_selector("app=logs").value()};
  add(a_workload("DaemonSet", "logs", 0, {{"terminationGracePeriodSeconds", 20}},
                 {{"sim.haulout.dev/terminates-after", "20s"}}));
  Machine& n1 = machine("n1", {.methods = {}});
  pods_on_n1(2, {});
  after(3min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    EXPECT_EQ(evicted().size(), 3u);
    n1.kill_agent();
  });
  after(6min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    EXPECT_EQ(evicted().size(), 3u);
    n1.power_cycle();
  });
  run_fleet(1h);
  expect_updated(n1);
}

// The agent is killed after the pod of the DaemonSet was evicted, and before the drain has ended.
TEST_F(FleetScenario, ARestartedAgentEvictsNoPodOfADaemonSetTwice) {
  options.drain.policy.evict_daemon_sets = {k8s::parse_label_selector("app=logs").value()};
  options.drain.settle = 2min;
  add(a_workload("DaemonSet", "logs", 0, {{"terminationGracePeriodSeconds", 5}}));
  Machine& n1 = machine("n1");
  after(1min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    EXPECT_EQ(evicted().size(), 1u);
    n1.kill_agent();
  });
  run_fleet(1h);
  expect_updated(n1);
  EXPECT_EQ(evicted().size(), 1u) << story();
}

// NTP or a person sets the clock. No node gets stuck, and nothing is done twice.
TEST_F(FleetScenario, ClocksJump) {
  for (const Duration jump : {Duration(1h), Duration(-1h), Duration(24h), Duration(-24h)}) {
    struct TwoNodes : FleetScenario {
      void TestBody() override {}
      void go(Duration jump) {
        options.times.soak = 30s;
        Machine& n1 = machine("n1", {.ignored_reboots = 1});
        machine("n2");
        add(a_workload("Deployment", "web", 4, {{"terminationGracePeriodSeconds", 20}}));
        for (const Duration when : {15s, 40s, 300s, 900s}) after(when, [this, jump] { clock.shift_wall(jump); });
        run_fleet(4h);
        for (const auto& each : machines) expect_updated(*each);
        EXPECT_THAT(n1.asked, ElementsAre("logind", "systemd")) << story();
      }
    };
    TwoNodes().go(jump);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace haulout::fleet
