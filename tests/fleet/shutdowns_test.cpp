// A person or another tool reboots a machine. The agent evicts its pods while logind delays the shutdown, and leaves
// nothing behind afterwards.
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct Shutdowns : Fleet {
  void web(int replicas, int grace) {
    add(a_workload("Deployment", "web", replicas, {{"terminationGracePeriodSeconds", grace}}));
  }
  // Adds a pod that its budget never lets go.
  void held_pod() {
    PodSpec held;
    held.labels = {{"app", "held"}};
    held.node = "n1";
    add(a_pod("held-0", held));
    add(a_budget("held", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
  }
  std::size_t pods_on(const std::string& name) const {
    std::size_t count = 0;
    for (const Json& pod : cluster.all("pods")) count += sim::text(pod, "/spec/nodeName") == name;
    return count;
  }
  std::string mark(const std::string& name) const { return sim::annotation(node(name), "haulout.dev/cordon"); }
  std::string run_in_record(const std::string& name) const {
    return agent::decode_record(sim::annotation(node(name), "haulout.dev/record")).run;
  }
  // State of the node at the moment at which it goes down.
  struct Last {
    TimePoint at{};
    std::size_t pods = 0;
    std::string reason, message, maintenance, run;
    bool unschedulable = false;
  };
  Last last;
  void look_at_the_end_of(const std::string& name) {
    cluster.on_change([this, name](const sim::Change& change) {
      const bool ready = sim::text(sim::condition(node(name), "Ready"), "/status") == "True";
      if (change.key.resource != "nodes" || change.key.name != name || ready || last.at != TimePoint{}) return;
      last = {clock.now(),
              pods_on(name),
              label(name, "haulout.dev/reason"),
              sim::annotation(node(name), "haulout.dev/message"),
              sim::text(sim::condition(node(name), "MaintenanceInProgress"), "/status"),
              run_in_record(name),
              unschedulable(name)};
    });
  }
  // Adds an invariant: no agent uncordons the node while its machine goes down.
  void forbid_uncordon_of(Machine& dying) {
    cluster.on_change([this, &dying, was = false](const sim::Change& change) mutable {
      if (change.key.resource != "nodes" || change.key.name != dying.node()) return;
      const bool is = unschedulable(dying.node());
      if (was && !is && dying.powered() && dying.shutting_down())
        checks.violated(dying.node() + " was uncordoned while it goes down");
      was = is;
    });
  }
  void expect_in_service(const std::string& name) const {
    EXPECT_FALSE(unschedulable(name)) << story();
    EXPECT_EQ(mark(name), "") << story();
    EXPECT_EQ(state(name), "idle") << story();
    EXPECT_EQ(label(name, "haulout.dev/reason"), "") << story();
    EXPECT_EQ(run_in_record(name), "") << story();
    EXPECT_NE(sim::text(sim::condition(node(name), "MaintenanceInProgress"), "/status"), "True") << story();
  }
};

TEST_F(Shutdowns, PodsLeaveBeforeAndTheCordonIsTakenBackAfterTheBoot) {
  Machine& n1 = machine("n1", {.target = "", .delays_shutdown = 30s});
  machine("n2", {.target = ""});
  web(6, 5);
  look_at_the_end_of("n1");
  TimePoint told;
  after(5min, [&] {
    EXPECT_GT(pods_on("n1"), 0u);
    told = clock.now();
    n1.shut_down();
  });
  run_fleet();
  EXPECT_EQ(n1.boots(), 1u) << story();
  EXPECT_EQ(last.pods, 0u) << story();
  EXPECT_TRUE(last.unschedulable);
  EXPECT_EQ(last.reason, "ShutdownDrained") << story();
  EXPECT_THAT(last.message, HasSubstr("evicted and deleted in the meantime"));
  EXPECT_EQ(last.maintenance, "True");
  EXPECT_NE(last.run, "");
  // The shutdown was not delayed longer than necessary.
  EXPECT_LT(last.at - told, 15s) << story();
  expect_in_service("n1");
  EXPECT_EQ(slots_held(), 0u);
  EXPECT_THAT(states_of("n1"), Not(Contains("draining")));
}

// A node in the state `verifying` usually has no pods. This one took pods during its soak time, before its last boot.
// When it is shut down, the agent evicts them.
TEST_F(Shutdowns, PodsLeaveANodeThatIsVerifiedOnceMoreAfterItTookPods) {
  options.times.soak = 10min;
  Machine& n1 = machine("n1", {.delays_shutdown = 30s});
  machine("n2", {.target = ""});
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "soaking") << story();
    web(4, 5);
  });
  after(6min, [&] {
    n1.plan().version_unknown = true;
    n1.power_cycle();
  });
  after(9min, [&] {
    EXPECT_EQ(state("n1"), "verifying") << story();
    EXPECT_FALSE(unschedulable("n1"));
    EXPECT_NE(sim::text(sim::condition(node("n1"), "MaintenanceInProgress"), "/status"), "True") << story();
    EXPECT_GT(pods_on("n1"), 0u);
    look_at_the_end_of("n1");
    n1.shut_down();
  });
  after(10min, [&] { n1.plan().version_unknown = false; });
  run_fleet();
  EXPECT_EQ(last.pods, 0u) << story();
  EXPECT_EQ(last.reason, "ShutdownDrained") << story();
  expect_in_service("n1");
}

// The drain is configured to require the right to list VolumeAttachments, and this right is revoked. The agent evicts
// the pods all the same, because they would otherwise go down with the machine.
TEST_F(Shutdowns, PodsLeaveThoughNobodyMaySeeTheVolumesAnyMore) {
  options.drain.volumes = options.drain.volume_turns = drain::VolumeWait::required;
  Machine& n1 = machine("n1", {.target = "", .delays_shutdown = 30s});
  machine("n2", {.target = ""});
  web(4, 5);
  look_at_the_end_of("n1");
  after(5min, [&] {
    cluster.forbid("list", "volumeattachments");
    n1.shut_down();
  });
  run_fleet();
  EXPECT_EQ(last.pods, 0u) << story();
  EXPECT_EQ(last.reason, "ShutdownDrained") << story();
}

TEST_F(Shutdowns, WhatLogindDoesNotWaitForIsNamed) {
  Machine& n1 = machine("n1", {.target = "", .delays_shutdown = 5s});
  machine("n2", {.target = ""});
  web(4, 1);
  held_pod();
  look_at_the_end_of("n1");
  TimePoint told;
  after(5min, [&] {
    told = clock.now();
    n1.shut_down();
  });
  run_fleet();
  EXPECT_EQ(n1.boots(), 1u) << story();
  EXPECT_EQ(last.reason, "ShutdownUndrained") << story();
  EXPECT_THAT(last.message, HasSubstr("held-0 (BlockedByBudget)"));
  EXPECT_EQ(last.pods, 1u) << story();
  EXPECT_LT(last.at - told, 5s) << "the word was written before time was up\n" << story();
  expect_in_service("n1");
}

TEST_F(Shutdowns, ACancelledShutdownUncordonsTheNodeAtOnce) {
  Machine& n1 = machine("n1", {.target = "", .delays_shutdown = 30s});
  machine("n2", {.target = ""});
  held_pod();
  after(5min, [&] { n1.shut_down(); });
  after(5min + 10s, [&] {
    EXPECT_TRUE(unschedulable("n1")) << story();
    n1.call_shutdown_off();
  });
  run_fleet();
  EXPECT_EQ(n1.boots(), 0u) << story();
  EXPECT_THAT(story(), Not(HasSubstr("ShutdownUndrained"))) << "no machine went down over a pod";
  expect_in_service("n1");
}

TEST_F(Shutdowns, TheCordonOfAPersonStays) {
  Machine& n1 = machine("n1", {.target = "", .delays_shutdown = 30s});
  machine("n2", {.target = ""});
  web(4, 1);
  look_at_the_end_of("n1");
  after(4min, [&] { cordon("n1"); });
  after(5min, [&] { n1.shut_down(); });
  run_fleet();
  EXPECT_EQ(n1.boots(), 1u);
  EXPECT_EQ(last.pods, 0u) << story();
  EXPECT_TRUE(unschedulable("n1")) << story();
}

TEST_F(Shutdowns, ADrainThatIsUnderWayGoesOn) {
  Machine& n1 = machine("n1", {.delays_shutdown = 30s});
  machine("n2", {.target = ""});
  held_pod();
  look_at_the_end_of("n1");
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    n1.shut_down();
  });
  run_fleet();
  EXPECT_EQ(n1.boots(), 1u) << story();
  expect_updated(n1);
  expect_in_service("n1");
}

// The node is ready and another tool may reboot it. The shutdown of an empty node is not delayed.
TEST_F(Shutdowns, AnEmptyNodeIsNotDelayed) {
  Machine& n1 = machine("n1", {.methods = {}, .delays_shutdown = 30s});
  TimePoint told;
  look_at_the_end_of("n1");
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    told = clock.now();
    n1.shut_down();
  });
  run_fleet();
  EXPECT_LT(last.at - told, 1s) << story();
  expect_updated(n1);
}

// The agent is about to withdraw `ready`, but cannot write that. The Node still shows that it is drained and ready. So
// there is nothing to drain, and the machine may go down at once.
TEST_F(Shutdowns, ANodeThatIsStillReadyIsNotDrainedOnceMore) {
  sim::FaultTransport mute(cluster.api(), clock, world_rng);
  mute.add({.verb = "patch",
            .resource = "nodes",
            .from = clock.now() + 5min,
            .until = clock.now() + 5min + 20s,
            .fault = {.kind = sim::FaultKind::server_error}});
  way = [&mute] { return &mute; };
  Machine& n1 = machine("n1", {.methods = {}, .delays_shutdown = 30s});
  look_at_the_end_of("n1");
  after(5min + 1s, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    n1.want("");
  });
  after(5min + 5s, [&] { n1.shut_down(); });
  after(5min + 30s, [&] { n1.want("1.1"); });
  run_for(20min);
  EXPECT_GT(mute.struck().size(), 0u) << story();
  EXPECT_LT(last.at - n1.shut_down_last, 1s) << story();
  expect_updated(n1);
}

// Machine::reboot() checks that no agent delays its own reboot.
TEST_F(Shutdowns, AgentsRebootWithoutDelay) {
  for (const char* name : {"n1", "n2"}) machine(name, {.delays_shutdown = 30s});
  web(4, 1);
  run_fleet();
  for (const auto& each : machines) {
    expect_updated(*each);
    EXPECT_EQ(each->boots(), 1u);
  }
}

TEST_F(Shutdowns, AnApiServerThatIsAwayDelaysItNoLonger) {
  Machine& n1 = machine("n1", {.target = "", .delays_shutdown = 20s});
  machine("n2", {.target = ""});
  web(4, 1);
  after(5min, [&] {
    cluster.restart(1min);
    n1.shut_down();
  });
  after(5min + 21s, [&] { EXPECT_FALSE(n1.powered()) << story(); });
  run_fleet();
  EXPECT_EQ(n1.boots(), 1u) << story();
  // The warning says what happens, without the status from before.
  EXPECT_THAT(story(), HasSubstr("the machine goes down although its drain has not ended")) << story();
  EXPECT_THAT(story(), HasSubstr("the cordon stays until the next boot\n")) << story();
  expect_in_service("n1");
}

// P7: kills the agent at each of its requests, before and after the server carries it out. Nothing is left behind,
// either after the boot that follows or when the shutdown is called off.
TEST_F(Shutdowns, P7_ACrashLeavesNothingBehind) {
  std::size_t first = 0, last_request = 0;
  struct OneRun : Shutdowns {
    void TestBody() override {}
    using Shutdowns::after;
    using Shutdowns::cluster;
    using Shutdowns::expect_in_service;
    using Shutdowns::forbid_uncordon_of;
    using Shutdowns::machine;
    using Shutdowns::run_fleet;
    using Shutdowns::web;
  };
  // With `others`, another program such as the kubelet delays the shutdown, too. Then the next agent starts on a
  // machine that is going down.
  const auto play = [&](std::optional<CrashPoint> crash, bool called_off, bool others) {
    OneRun one;
    Machine& n1 = one.machine("n1", {.target = "", .agent_starts = 2s, .delays_shutdown = 30s, .others_delay = others});
    one.forbid_uncordon_of(n1);
    one.machine("n2", {.target = ""});
    one.web(4, 1);
    if (crash) n1.crash_at(*crash);
    one.after(5min, [&] {
      if (!crash) first = n1.requests() + 1;
      n1.shut_down();
    });
    if (called_off) one.after(others ? 5min + 10s : 5min + 1s, [&] { n1.call_shutdown_off(); });
    one.run_fleet();
    if (!crash) last_request = n1.requests();
    one.expect_in_service("n1");
  };
  for (const auto [called_off, others] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
    play(std::nullopt, called_off, others);
    ASSERT_GT(last_request, first + 5);
    for (std::size_t request = first; request <= last_request; ++request)
      for (const bool after_it : {false, true}) {
        SCOPED_TRACE("request " + std::to_string(request - first) + (after_it ? " after" : " before") +
                     (called_off ? ", called off" : "") + (others ? ", others delay it" : ""));
        play(CrashPoint{request, after_it}, called_off, others);
      }
  }
}

// P7: the agent has requested the reboot, logind waits for other programs, and the agent is restarted meanwhile. The
// next agent does not request the reboot again.
TEST_F(Shutdowns, P7_AnAgentThatStartsOnAMachineThatGoesDownDoesNotAskAgain) {
  Machine& n1 = machine("n1", {.agent_starts = 2s, .late_by = 40s, .delays_shutdown = 60s, .others_delay = true});
  forbid_uncordon_of(n1);
  std::size_t killed = 0;
  for (int second = 1; second < 300; ++second)
    after(std::chrono::seconds(second), [&] {
      if (!n1.powered() || !n1.shutting_down() || killed > 2) return;
      ++killed;
      n1.kill_agent();
    });
  run_fleet();
  EXPECT_EQ(killed, 3u);
  EXPECT_THAT(n1.asked, ::testing::ElementsAre("logind")) << story();
  EXPECT_THAT(states_of("n1"), Not(Contains("degraded")));
  expect_updated(n1);
}

// The agent does not request its reboot while another shutdown is in progress, because logind would refuse. If that
// shutdown is called off, the agent requests the reboot by the same method, not by the next one.
TEST_F(Shutdowns, OurRebootIsAskedForAfterSomebodyElsesWasCalledOff) {
  Machine& n1 = machine("n1", {.delays_shutdown = 60s, .others_delay = true});
  machine("n2", {.target = ""});
  bool told = false;
  cluster.on_change([&](const sim::Change& change) {
    if (told || change.key.resource != "nodes" || state("n1") != "rebooting") return;
    told = true;
    n1.shut_down();
    cluster.after(20s, [&] {
      EXPECT_THAT(n1.asked, ::testing::IsEmpty()) << story();
      n1.call_shutdown_off();
    });
  });
  run_fleet();
  EXPECT_TRUE(told);
  EXPECT_THAT(n1.asked, ::testing::ElementsAre("logind")) << story();
  EXPECT_EQ(n1.boots(), 1u) << story();
  expect_updated(n1);
}

// The update fails after its drain has cordoned the node. By then the machine is going down, so the cordon stays until
// after the boot.
TEST_F(Shutdowns, AnUpdateThatFailsWhileTheMachineGoesDownKeepsTheCordonUntilTheBoot) {
  Machine& n1 =
      machine("n1", {.agent_starts = 2s, .methods = {"logind"}, .refused_reboots = 9, .delays_shutdown = 30s});
  n1.plan().others_delay = true;
  forbid_uncordon_of(n1);
  bool told = false;
  cluster.on_change([&](const sim::Change& change) {
    if (told || change.key.resource != "nodes" || state("n1") != "rebooting") return;
    told = true;
    n1.shut_down();
  });
  run_fleet();
  EXPECT_TRUE(told);
  expect_updated(n1);
}

}  // namespace
}  // namespace haulout::fleet
