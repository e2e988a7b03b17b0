// Machines that reboot although the agent reads the same boot id as before: containers, and agents in a sandbox that
// shows another boot id.
#include "tests/fleet/gated_fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct BootIds : Fleet {
  std::string message(const std::string& name) const { return sim::annotation(node(name), "haulout.dev/message"); }
  agent::Record record(const std::string& name) const {
    return agent::decode_record(sim::annotation(node(name), "haulout.dev/record"));
  }
};

struct BrakedBootIds : GatedFleet {};

// Regression test: an earlier version rebooted such a machine every four seconds, forever.
TEST_F(BootIds, AMachineWhoseBootIdStaysIsRebootedOnce) {
  Machine& n1 = machine("n1", {.same_boot_id = true});
  Machine& n2 = machine("n2", {.target = ""});
  after(30min, [&] { n2.want("1.1"); });
  run_for(12h);
  EXPECT_THAT(n1.asked, ElementsAre("logind")) << story();
  EXPECT_EQ(n1.boots(), 1u);
  EXPECT_EQ(state("n1"), "degraded");
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "BootIdUnchanged");
  EXPECT_THAT(message("n1"), HasSubstr("process 1"));
  EXPECT_EQ(record("n1").reboots.size(), 1u);
  // Nothing proves the reboot. So the cordon and the slot stay, and no other node follows.
  EXPECT_TRUE(unschedulable("n1"));
  EXPECT_EQ(slots_held(), 1u);
  EXPECT_EQ(n2.boots(), 0u);
}

// Nothing shows whether the machine has restarted. The agent tries each method until its limit is over. It uses one
// method twice: the agent that started after the first request cannot know whether its predecessor was killed before it
// sent the request.
TEST_F(BootIds, WithoutBootInformationEachRebootMethodIsTriedWithinItsLimit) {
  Machine& n1 = machine("n1", {.still_wanted = true, .same_boot_id = true, .start_hidden = true});
  after(9min, [&] { EXPECT_EQ(n1.boots(), 1u) << story(); });
  run_for(12h);
  EXPECT_THAT(n1.asked, ElementsAre("logind", "logind", "systemd")) << story();
  EXPECT_EQ(state("n1"), "degraded");
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "RebootFailed");
  EXPECT_EQ(record("n1").reboots.size(), 3u) << "all of them count against the brake";
}

// Each accepted request may have caused a boot. So the agent checks the reboot limit before each further request, as
// before the first one.
TEST_F(BrakedBootIds, ARepeatThatWouldBeOneRebootTooManyIsNone) {
  joined.reboots_per_day = 1;
  Machine& n1 = machine("n1", {.still_wanted = true, .same_boot_id = true, .start_hidden = true});
  run_for(12h);
  EXPECT_THAT(n1.asked, ElementsAre("logind")) << story();
  EXPECT_EQ(state("n1"), "degraded");
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "TooManyReboots");
  EXPECT_THAT(message(), HasSubstr("it is unknown whether its first request rebooted the machine"));
}

TEST_F(BrakedBootIds, TheNextWayLooksAtTheBrakeToo) {
  joined.reboots_per_day = 2;
  Machine& n1 = machine("n1", {.still_wanted = true, .same_boot_id = true, .start_hidden = true});
  run_for(12h);
  EXPECT_THAT(n1.asked, ElementsAre("logind", "logind")) << story();
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "TooManyReboots");
}

TEST_F(BrakedBootIds, WhatAPersonHasRequestedIsNotHeldBack) {
  joined.reboots_per_day = 1;
  Machine& n1 = machine("n1", {.target = "", .same_boot_id = true, .start_hidden = true});
  after(1min, [&] { request(); });
  run_for(12h);
  EXPECT_THAT(n1.asked, ElementsAre("logind", "logind", "systemd")) << story();
}

// The operating system does not need the reboot any more. So the agent concludes that the machine was rebooted,
// although nothing else shows it.
TEST_F(BootIds, ARebootThatNobodySawAndThatServedItsNeedIsNotRepeated) {
  Machine& n1 = machine("n1", {.same_boot_id = true, .start_hidden = true});
  run_for(12h);
  EXPECT_THAT(n1.asked, ElementsAre("logind")) << story();
  EXPECT_EQ(state("n1"), "idle");
  EXPECT_FALSE(unschedulable("n1"));
}

// The sandbox of the agent's unit shows the host's boot id to the agent. The kubelet reports the machine's own boot id.
// So the agent could not recognize a reboot, and requests none.
TEST_F(BootIds, AnAgentThatReadsAForeignBootIdRebootsNothing) {
  Machine& n1 = machine("n1", {.same_boot_id = true, .kubelet_knows = true});
  run_for(3h);
  EXPECT_THAT(n1.asked, ::testing::IsEmpty()) << story();
  EXPECT_EQ(state("n1"), "pending");
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "BootIdForeign");
  EXPECT_THAT(message("n1"), HasSubstr("boot-of-the-host"));
  EXPECT_THAT(states_of("n1"), Not(Contains("draining")));
  EXPECT_EQ(slots_held(), 0u);
}

// The agent reports a foreign boot id even on an idle node, which needs no reboot.
TEST_F(BootIds, AForeignBootIdIsSaidOfAnIdleNode) {
  machine("n1", {.target = "", .same_boot_id = true, .kubelet_knows = true});
  run_for(30min);
  EXPECT_EQ(state("n1"), "idle");
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "BootIdForeign") << story();
}

TEST_F(BootIds, AnAgentContinuesWhenItsBootIdIsCorrect) {
  Machine& n1 = machine("n1", {.same_boot_id = true, .kubelet_knows = true});
  after(30min, [&] { n1.repair(); });
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(n1.boots(), 1u);
}

// The node is already in the state `ready` when its agent learns that the kubelet reads another boot id. The agent
// withdraws `ready`.
TEST_F(BootIds, AForeignBootIdThatComesToLightLateGivesTheNodeBack) {
  Machine& n1 = machine("n1", {.methods = {}, .same_boot_id = true});
  after(10min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    cluster.node_up("n1", "boot-of-the-machine");
  });
  after(13min, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_FALSE(n1.shows_ready());
  });
  run_for(1h);
  EXPECT_EQ(n1.boots(), 0u);
}

// If the node became ready again, a tool that reboots ready nodes would reboot it again and again.
TEST_F(BootIds, ANodeThatAnotherProgramRebootedIsNotReadyAgain) {
  Machine& n1 = machine("n1", {.methods = {}, .still_wanted = true, .same_boot_id = true});
  for (const Duration when : {10min, 20min, 30min})
    after(when, [&] {
      if (n1.shows_ready()) n1.power_cycle();
    });
  run_for(2h);
  EXPECT_EQ(n1.boots(), 1u) << story();
  EXPECT_EQ(state("n1"), "degraded");
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "BootIdUnchanged");
}

// A kubelet that is Ready at once and reports the new boot id later is no fault.
TEST_F(BootIds, AKubeletThatTellsOfABootLateIsWaitedFor) {
  Machine& n1 = machine("n1", {.kubelet_late = 5min});
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(n1.boots(), 1u) << story();
  EXPECT_THAT(states_of("n1"), Not(Contains("degraded")));
}

// The limit of the reboot request passes while the machine is down.
TEST_F(BootIds, AMachineThatIsDownForLongerThanItsTimeIsNotRebootedAgain) {
  Machine& n1 = machine("n1", {.down = 25min, .same_boot_id = true});
  run_for(6h);
  EXPECT_THAT(n1.asked, ElementsAre("logind")) << story();
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "BootIdUnchanged");
}

// P7: whenever the agent dies, the next agent does not request the reboot again before the limit is over. The node does
// not get stuck either.
TEST_F(BootIds, AnAgentThatDiesAroundItsRequestAsksOnceInEachTime) {
  for (const Duration later : {0ms, 1ms, 2ms, 5ms, 10ms, 20ms, 50ms, 1000ms}) {
    struct OneNode : Fleet {
      void TestBody() override {}
      void go(Duration later) {
        Machine& n1 = machine("n1", {.ignored_reboots = 1});
        bool seen = false;
        cluster.on_change([&](const sim::Change& change) {
          if (seen || change.key.name != "n1" || state("n1") != "rebooting") return;
          seen = true;
          cluster.after(later, [&] { n1.kill_agent(); });
        });
        run_fleet();
        EXPECT_TRUE(seen);
        expect_updated(n1);
        EXPECT_LE(n1.asked.size(), 2u) << story();
        EXPECT_EQ(n1.boots(), 1u);
      }
    };
    SCOPED_TRACE(later.count());
    OneNode().go(later);
    if (HasFailure()) return;
  }
}

// A request that leads to no reboot also counts against the limit of three reboots a day. So the agent writes each
// request to the record before it sends it.
TEST_F(BootIds, WhatWasAskedForIsWrittenBeforeItIsAskedFor) {
  Machine& n1 = machine("n1", {.methods = {"logind"}, .ignored_reboots = 1});
  std::optional<agent::Record> then;
  n1.on_asked = [&] { then = record("n1"); };
  run_for(5min);
  ASSERT_TRUE(then) << story();
  EXPECT_TRUE(then->asked);
  ASSERT_EQ(then->reboots.size(), 1u);
  EXPECT_TRUE(then->reboots.back().asked_only);
  EXPECT_TRUE(then->marks);
}

}  // namespace
}  // namespace haulout::fleet
