// Mistakes that other reboot tools make: each test is named after the behaviour and shows that this agent behaves
// correctly. The table is in docs/scenarios.md. Rows that are tested in other files are not repeated here.
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

struct OtherTools : Fleet {
  void held_pod() {
    PodSpec held;
    held.labels = {{"app", "held"}};
    add(a_pod("held-0", held));
    add(a_budget("held", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
  }
  void when_a_turn_is_given_back(const std::function<void()>& action) {
    cluster.on_change([action](const sim::Change& change) {
      if (change.key.resource == "leases" && change.type == sim::ChangeType::deleted) action();
    });
  }
  // Runs the action once, as soon as the Node shows this state.
  void once_in(const std::string& wanted, std::function<void()> action) {
    cluster.on_change([this, wanted, action = std::move(action), done = false](const sim::Change& change) mutable {
      if (done || change.key.resource != "nodes" || state("n1") != wanted) return;
      done = true;
      cluster.after(0s, action);
    });
  }
};

// The controller that adds the taint `unschedulable` after a cordon may be late, or may have another clock. The time of
// the taint does not decide whose cordon it is: the agent uncordons its node.
TEST_F(OtherTools, P5_OurCordonIsTakenBackHoweverLateItsTaintComes) {
  cluster.timing().taint_lag = 15s;
  Machine& n1 = machine("n1");
  Machine& n2 = machine("n2");
  PodSpec slow;
  slow.grace = 30;
  add(a_pod("slow-0", slow));
  run_fleet(1h);
  expect_updated(n1);
  expect_updated(n2);
}

// A person cordons the node while the taint `unschedulable` is still missing. The agent recognizes the person's cordon
// without the taint.
TEST_F(OtherTools, P5_APersonsCordonWithoutItsTaintIsNotTakenBack) {
  cluster.timing().taint_lag = 10min;
  machine("n1");
  held_pod();
  after(1min, [&] {
    uncordon("n1");
    cordon("n1");
  });
  after(2min, [&] { cluster.remove("poddisruptionbudgets", "shop", "held"); });
  run_fleet(2h);
  EXPECT_TRUE(unschedulable("n1")) << story();
}

// Other tools release the lock while the node is still cordoned. Or they wait before they release the lock, and
// uncordon the node only after this delay.
TEST_F(OtherTools, ANodeTakesPodsAgainBeforeItsTurnIsGivenBack) {
  options.times.soak = 10min;
  Machine& n1 = machine("n1");
  std::size_t given_back = 0;
  when_a_turn_is_given_back([&] {
    ++given_back;
    EXPECT_FALSE(unschedulable("n1")) << story();
  });
  once_in("soaking", [&] { EXPECT_FALSE(unschedulable("n1")) << story(); });
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(given_back, 1u);
}

TEST_F(OtherTools, ANodeWhoseDrainFailedTakesPodsAgainBeforeItsTurnIsGivenBack) {
  options.drain.timeout = 2min;
  machine("n1");
  held_pod();
  std::size_t given_back = 0;
  when_a_turn_is_given_back([&] {
    ++given_back;
    EXPECT_FALSE(unschedulable("n1")) << story();
  });
  run_for(5min);
  EXPECT_GE(given_back, 1u);
}

// In other tools, after one failed read of the lock after the boot, the node stays cordoned and keeps its lock until a
// person restarts the pod of the tool.
TEST_F(OtherTools, TurnsThatCannotBeReadAfterTheBootAreGivenBackOnceTheyCan) {
  Machine& n1 = machine("n1");
  once_in("verifying", [&] { cluster.forbid("list", "leases"); });
  after(20min, [&] {
    EXPECT_FALSE(unschedulable("n1")) << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "CannotRelease") << story();
    EXPECT_EQ(slots_held(), 1u);
    cluster.permit("list", "leases");
  });
  run_fleet(1h);
  expect_updated(n1);
  EXPECT_EQ(slots_held(), 0u);
}

// In other tools, a change of the limit changes the format of the lock. The holders in the old format are lost, or the
// tool never reads them again.
TEST_F(OtherTools, ALimitThatIsRaisedTakesNobodysTurnAway) {
  for (const char* name : {"n1", "n2", "n3", "n4"}) machine(name);
  after(40s, [&] {
    EXPECT_EQ(slots_held(), 1u) << story();
    limit = 2;
    for (const auto& each : machines) each->kill_agent();
  });
  run_fleet();
  for (const auto& each : machines) {
    expect_updated(*each);
    EXPECT_EQ(each->boots(), 1u);
  }
  EXPECT_EQ(slots_held(), 0u);
}

// Other tools crash on a Node without annotations.
TEST_F(OtherTools, ANodeWithoutLabelsAndAnnotations) {
  Machine& n1 = machine("n1");
  cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", nullptr}, {"annotations", nullptr}}}});
  run_fleet(1h);
  expect_updated(n1);
}

// Other tools find a pod that policy forbids to evict only after the cordon. Then they fail and restart forever while
// the node is cordoned.
TEST_F(OtherTools, APodThatPolicyKeepsIsFoundBeforeTheCordonAndHoldsNobodyElseUp) {
  options.drain.policy.unmanaged = drain::Treatment::refuse;
  machine("n1");
  Machine& n2 = machine("n2", {.target = ""});
  PodSpec alone;
  alone.owner_kind = "";
  add(a_pod("alone-0", alone));
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource == "nodes" && change.key.name == "n1") EXPECT_FALSE(unschedulable("n1")) << story();
  });
  after(3min, [&] { n2.want("1.1"); });
  run_for(3h);
  EXPECT_EQ(state("n1"), "pending") << story();
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "BackingOff");
  EXPECT_THAT(node("n1")["metadata"]["annotations"].value("haulout.dev/message", ""),
              ::testing::HasSubstr("shop/alone-0"));
  EXPECT_EQ(checks.evictions, 0u);
  expect_updated(n2);
}

// Other tools that start and find that they hold the lock conclude that the node has rebooted.
TEST_F(OtherTools, ATurnWithoutARebootIsNotTakenForOne) {
  Machine& n1 = machine("n1", {.agent_starts = 20s});
  once_in("draining", [&] { n1.kill_agent(); });
  after(10s, [&] { EXPECT_EQ(n1.boots(), 0u); });
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.name == "n1" && n1.boots() == 0)
      EXPECT_THAT((std::set<std::string>{"verifying", "uncordoning", "soaking"}), Not(Contains(state("n1"))));
  });
  run_fleet(1h);
  expect_updated(n1);
  EXPECT_EQ(n1.boots(), 1u);
}

// The agent is not permitted to write its Node. In other tools, at most the log of one pod shows that.
TEST_F(OtherTools, P8_ANodeThatMayNotBeWrittenIsTold) {
  Machine& n1 = machine("n1");
  held_pod();
  once_in("draining", [&] { cluster.forbid("patch", "nodes"); });
  after(2min, [&] {
    EXPECT_EQ(n1.status().reason, "NodeNotWritten") << story();
    EXPECT_THAT(n1.status().message, ::testing::HasSubstr("forbidden"));
    cluster.remove("poddisruptionbudgets", "shop", "held");
  });
  after(10min, [&] {
    EXPECT_EQ(n1.status().reason, "NodeNotWritten") << story();
    EXPECT_EQ(n1.status().state, agent::State::draining) << "what could not be written is not so";
    cluster.permit("patch", "nodes");
  });
  run_fleet(1h);
  expect_updated(n1);
  EXPECT_EQ(n1.status().reason, "");
}

// When a machine was replaced, its agent must not continue what the old machine was doing.
TEST_F(OtherTools, ANodeThatIsMadeAnewInTheMiddleBeginsAnew) {
  for (const char* where : {"waiting", "draining", "ready", "soaking"}) {
    struct OneNode : OtherTools {
      void TestBody() override {}
      void go(const std::string& where) {
        options.times.soak = 5min;
        Machine& n1 = machine(
            "n1", {.methods = where == "ready" ? std::vector<std::string>{} : std::vector<std::string>{"logind"}});
        once_in(where, [&] { cluster.after(1s, [&] { checks.by_a_person([&] { cluster.replace_node("n1"); }); }); });
        if (where == "ready") after(30min, [&] { n1.power_cycle(); });
        run_fleet(3h);
        expect_updated(n1);
        EXPECT_FALSE(n1.shows_ready());
        EXPECT_EQ(slots_held(), 0u) << where << "\n" << story();
      }
    };
    OneNode().go(where);
    if (HasFailure()) return;
  }
}

// The gates of other nodes find a degraded node by its label. So the agent restores a label that another client
// removes.
TEST_F(OtherTools, LabelsThatSomebodyTakesAwayAreThereAgain) {
  machine("n1", {.rolls_back = true});
  after(30min, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    cluster.patch("nodes", "", "n1",
                  {{"metadata",
                    {{"labels", {{"haulout.dev/state", nullptr}, {"haulout.dev/reason", "Nonsense"}}},
                     {"annotations", {{"haulout.dev/message", nullptr}}}}}});
  });
  after(31min, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "RolledBack");
  });
  run_for(1h);
}

// If the agent restored the label at once each time, two programs would overwrite each other without end. Each write is
// a watch event for all clients.
TEST_F(OtherTools, LabelsThatSomebodyTakesAwayEachTimeAreNotFoughtFor) {
  Machine& n1 = machine("n1", {.target = ""});
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.name != "n1" || state("n1").empty() || elapsed() < 1min) return;
    cluster.after(
        1s, [&] { cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"haulout.dev/state", nullptr}}}}}}); });
  });
  after(1min,
        [&] { cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"haulout.dev/state", nullptr}}}}}}); });
  std::size_t before = 0;
  after(1min, [&] { before = n1.requests(); });
  after(5h, [&] { EXPECT_LT(n1.requests() - before, 200u); });
  run_for(5h + 1min);
  EXPECT_GT(n1.requests() - before, 20u) << "nor forgotten";
}

// The response to the agent's write shows that the labels are there. The agent must not write again although the watch
// delivers nothing for minutes.
TEST_F(OtherTools, LabelsAreWrittenAgainOnceWhereTheWatchFallsSilent) {
  machine("n1", {.target = ""});
  std::size_t before = 0;
  after(10min,
        [&] { cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"haulout.dev/state", nullptr}}}}}}); });
  after(10min + 2s, [&] {
    cluster.silence_watches();
    before = patches_of_nodes();
  });
  after(12min, [&] {
    EXPECT_EQ(state("n1"), "idle") << story();
    EXPECT_EQ(patches_of_nodes() - before, 1u) << story();
  });
  run_for(13min);
}

// The server throttles the write that restores the labels, with Retry-After. The agent waits that long.
TEST_F(OtherTools, LabelsAreWrittenAgainNoSoonerThanTheServerAsks) {
  sim::FaultTransport busy(cluster.api(), clock, world_rng);
  busy.add({.verb = "patch",
            .resource = "nodes",
            .from = clock.now() + 10min,
            .until = clock.now() + 20min,
            .fault = {.kind = sim::FaultKind::throttle, .retry_after = "120"}});
  way = [&busy] { return &busy; };
  machine("n1", {.target = ""});
  after(10min,
        [&] { cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"haulout.dev/state", nullptr}}}}}}); });
  after(20min, [&] {
    EXPECT_THAT(busy.struck(), SizeIs(AllOf(Ge(3u), Le(6u)))) << "one each two minutes, or fewer\n" << story();
  });
  run_for(25min);
  EXPECT_EQ(state("n1"), "idle") << story();
}

// A person edits the record once. The agent continues, and does not take the change for that of a second agent.
TEST_F(OtherTools, ARecordThatSomebodyWroteOnceIsNotFoughtOver) {
  Machine& n1 = machine("n1", {.target = ""});
  after(5min, [&] {
    agent::Record written = agent::decode_record(sim::annotation(node("n1"), "haulout.dev/record"));
    written.run = "somebody's";
    cluster.patch("nodes", "", "n1",
                  {{"metadata", {{"annotations", {{"haulout.dev/record", agent::encode_record(written)}}}}}});
  });
  after(6min, [&] { n1.want("1.1"); });
  run_fleet();
  expect_updated(n1);
  EXPECT_THAT(story(), Not(HasSubstr("SecondAgent")));
}

// The agent is older than the record, after a downgrade. It leaves the record unchanged for agents that can read it.
TEST_F(OtherTools, ARecordOfANewerVersionStaysWhatItIs) {
  const std::string newer = R"({"v":2,"state":"soaking","something":"else"})";
  machine("n1");
  cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"haulout.dev/record", newer}}}}}});
  after(1h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "RecordUnreadable");
    EXPECT_EQ(sim::annotation(node("n1"), "haulout.dev/record"), newer);
    EXPECT_LT(machines[0]->requests(), 60u);
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"haulout.dev/record", nullptr}}}}}});
  });
  run_fleet();
  expect_updated(*machines[0]);
}

}  // namespace
}  // namespace haulout::fleet
