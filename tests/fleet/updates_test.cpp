// A fleet updates itself.
#include "k8s/objects.hpp"
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

struct Updates : Fleet {};

TEST_F(Updates, ThreeNodesOneAfterTheOther) {
  for (const char* name : {"n1", "n2", "n3"}) machine(name);
  add(a_workload("Deployment", "web", 6, {{"terminationGracePeriodSeconds", 5}}));
  add(a_budget("web", {{"minAvailable", 4}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  run_fleet();
  for (const auto& each : machines) {
    expect_updated(*each);
    EXPECT_EQ(each->boots(), 1u) << story();
    EXPECT_THAT(states_of(each->node()), ElementsAre("idle", "pending", "waiting", "draining", "ready", "rebooting",
                                                     "verifying", "uncordoning", "soaking", "idle"))
        << story();
  }
  EXPECT_EQ(slots_held(), 0u);
}

TEST_F(Updates, AFleetThatNeedsNothingIsLeftAlone) {
  for (const char* name : {"n1", "n2"}) machine(name, {.target = ""});
  run_fleet();
  for (const auto& each : machines) {
    EXPECT_EQ(each->boots(), 0u);
    EXPECT_EQ(state(each->node()), "idle");
    EXPECT_THAT(states_of(each->node()), ElementsAre("idle"));
  }
}

// As on Bottlerocket: the machine boots only the version that the agent has put in place.
TEST_F(Updates, WhatTheAgentMustPutInPlaceIsInPlaceBeforeAPodLeaves) {
  machine("n1", {.must_apply = true, .apply_takes = 5min});
  machine("n2", {.target = ""});
  add(a_workload("Deployment", "web", 2, {{"terminationGracePeriodSeconds", 5}}));
  bool said = false;
  after(3min, [&] {
    said = label("n1", "haulout.dev/reason") == "ApplyingUpdate";
    EXPECT_EQ(evictions(), 0u) << "no pod leaves for a version that does not exist yet";
  });
  run_fleet();
  EXPECT_TRUE(said) << story();
  expect_updated(*machines[0]);
  EXPECT_EQ(machines[0]->applied(), "1.1");
}

// The machine crashes while the agent puts the new version in place. It boots the old version, which is no rollback.
TEST_F(Updates, ACrashBeforeTheRebootWasAskedForIsNoRollBack) {
  Machine& n1 = machine("n1", {.must_apply = true, .apply_takes = 5min});
  Machine& n2 = machine("n2", {.target = ""});
  after(2min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    n1.power_cycle();
    n2.want("1.1");
  });
  run_fleet();
  for (const Machine* each : {&n1, &n2}) {
    expect_updated(*each);
    EXPECT_THAT(states_of(each->node()), Not(Contains("degraded"))) << story();
  }
  EXPECT_EQ(n1.boots(), 2u);
}

// P4: the machine crashes during the drain and boots the old version. The agent must not report that as an update.
TEST_F(Updates, ACrashInTheMiddleOfADrainIsNoUpdate) {
  options.times.soak = 10min;
  Machine& n1 = machine("n1", {.must_apply = true, .apply_takes = 5min});
  const auto record = [this] { return agent::decode_record(sim::annotation(node("n1"), "haulout.dev/record")); };
  const auto message = [this] { return sim::annotation(node("n1"), "haulout.dev/message"); };
  std::vector<std::string> reasons;
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource != "nodes" || n1.boots() != 1) return;
    const std::string at = state("n1") + " " + label("n1", "haulout.dev/reason");
    if (reasons.empty() || reasons.back() != at) reasons.push_back(at);
  });
  after(2min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    n1.power_cycle();
  });
  after(8min, [&] {
    EXPECT_EQ(state("n1"), "soaking") << story();
    EXPECT_THAT(message(), HasSubstr("booted; the slot is released after the soak time"));
    EXPECT_EQ(record().verified_at, std::nullopt);
  });
  run_fleet();
  EXPECT_THAT(reasons, IsSupersetOf({"verifying RebootedMeanwhile", "uncordoning RebootedMeanwhile"})) << story();
  expect_updated(n1);
  EXPECT_TRUE(record().verified_at.has_value());
  EXPECT_EQ(record().durations.size(), 1u) << "of the update alone";
}

TEST_F(Updates, WhatCannotBePutInPlaceCostsNoPod) {
  machine("n1", {.must_apply = true, .failing_applies = 2});
  machine("n2", {.target = ""});
  add(a_workload("Deployment", "web", 2, {{"terminationGracePeriodSeconds", 5}}));
  std::string message;
  after(2min, [&] {
    message = node("n1")["metadata"]["annotations"].value("haulout.dev/message", "");
    EXPECT_EQ(evictions(), 0u);
    EXPECT_EQ(slots_held(), 0u) << "others may go meanwhile";
  });
  run_fleet();
  EXPECT_THAT(message, HasSubstr("no space left on the other partition")) << story();
  expect_updated(*machines[0]);
  EXPECT_EQ(machines[0]->boots(), 1u);
}

// When the role of the Node changes, its agent shows the new pool without a restart.
TEST_F(Updates, ThePoolThatIsShownIsThatOfTheNode) {
  options.pool = [](const k8s::Node& node) { return k8s::value_at(node.labels, "role").value_or(""); };
  machine("n1", {.target = ""});
  for (const auto& [when, role] : {std::pair(1min, "web"), std::pair(3min, "db")}) {
    after(when, [this, role] { cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"role", role}}}}}}); });
    after(when + 1min, [this, role] { EXPECT_EQ(label("n1", "haulout.dev/pool"), role) << story(); });
  }
  run_for(5min);
}

// If it is unknown whether a reboot is needed, the agent begins no update.
TEST_F(Updates, ABackEndThatCannotTellRebootsNothing) {
  machine("n1", {.unknown = true});
  run_fleet(1h);
  EXPECT_EQ(machines[0]->boots(), 0u);
  EXPECT_EQ(state("n1"), "unknown");
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "BackendUnknown");
  EXPECT_THAT(node("n1")["metadata"]["annotations"]["haulout.dev/message"], HasSubstr("locked"));
}

// P10: the node gets no slot until a person sets the label of its pool. The agent waits with few requests, and reacts
// to the label at once.
TEST_F(Updates, ANodeWithoutTheLabelOfItsPoolWaitsForTheLabel) {
  slots.grouping.pool_label = "role";
  Machine& n1 = machine("n1");
  std::size_t before = 0;
  after(30min, [&] {
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "SlotsUnavailable") << story();
    before = n1.requests();
  });
  after(90min, [&] {
    EXPECT_LE(n1.requests() - before, 60u) << story();
    cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"role", "web"}}}}}});
  });
  after(90min + 5s, [&] { EXPECT_EQ(state("n1"), "draining") << story(); });
  run_fleet();
  expect_updated(n1);
}

// An agent that cannot read which version runs cannot know later whether the update took place. Such a node takes no
// slot.
TEST_F(Updates, ANodeThatDoesNotKnowItsVersionHoldsNoTurn) {
  Machine& n1 = machine("n1", {.version_unknown = true});
  Machine& n2 = machine("n2", {.target = ""});
  after(10min, [&] {
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "BackendUnknown");
    EXPECT_EQ(slots_held(), 0u);
    EXPECT_LT(n1.requests(), 30u);
    n2.want("1.1");
  });
  after(1h, [&] {
    expect_updated(n2);
    n1.plan().version_unknown = false;
  });
  run_fleet();
  expect_updated(n1);
}

// The update tool is running again, so the agent cannot read whether the reboot is still wanted. It does not undo the
// drain.
TEST_F(Updates, ANodeThatIsReadyWaitsWhileNobodyKnowsOfTheNeed) {
  Machine& n1 = machine("n1");
  after(2s, [&] { n1.block("apt"); });
  after(1min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    n1.plan().unknown = true;
    n1.want("1.1");
    n1.block("");
  });
  after(10min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "BackendUnknown");
    n1.plan().unknown = false;
  });
  run_fleet();
  EXPECT_EQ(
      std::count(checks.states.begin(), checks.states.end(), std::pair<std::string, std::string>("n1", "draining")), 1)
      << story();
  expect_updated(n1);
}

TEST_F(Updates, ANodeThatDoesNotKnowItsVersionAnyMoreGivesItsTurnBack) {
  Machine& n1 = machine("n1");
  bool seen = false;
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource != "leases" || std::exchange(seen, true)) return;
    n1.plan().version_unknown = true;
    n1.kill_agent();
  });
  after(10min, [&] {
    EXPECT_TRUE(seen);
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "BackendUnknown");
    EXPECT_EQ(slots_held(), 0u);
    n1.plan().version_unknown = false;
  });
  run_fleet();
  expect_updated(n1);
}

// The pod of the StatefulSet db is created on n1 again after each eviction. By policy, a pod that has come back twice
// is skipped (--pinned leave).
struct PinnedUpdates : Updates {
  PinnedUpdates() {
    options.drain.policy.pinned = drain::Treatment::skip;
    checks.leaves_pinned_pods = true;
  }
  void pinned_database() {
    const Json tolerations = {{{"key", "node.kubernetes.io/unschedulable"}, {"operator", "Exists"}}};
    add(a_workload("StatefulSet", "db", 1, {{"terminationGracePeriodSeconds", 8}, {"tolerations", tolerations}},
                   {{"sim.haulout.dev/prefers-node", "n1"}}));
  }
};

TEST_F(PinnedUpdates, ANodeIsUpdatedAroundAPodThatStays) {
  Machine& n1 = machine("n1");
  pinned_database();
  add(a_pod("slow", {.grace = 120}));  // so that the drain continues while db-0 is evicted and comes back
  bool stayed = false;
  n1.on_asked = [&] { stayed = !cluster.get("pods", "shop", "db-0").is_null(); };
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(n1.boots(), 1u) << story();
  EXPECT_TRUE(stayed);
  EXPECT_EQ(evictions(), 3u) << "slow, and db-0 twice";
}

TEST_F(PinnedUpdates, AnAgentThatRestartsKnowsWhichPodsStay) {
  Machine& n1 = machine("n1", {.methods = {}});
  pinned_database();
  add(a_pod("slow", {.grace = 120}));
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    EXPECT_EQ(evictions(), 3u);
    n1.kill_agent();
  });
  after(15min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    EXPECT_TRUE(n1.shows_ready());
    EXPECT_EQ(evictions(), 3u) << story();
    EXPECT_EQ(std::ranges::count(states_of("n1"), "draining"), 1) << story();
  });
  run_for(16min);
}

// Each drain ends before the pod is back. In an earlier version each return began another drain, which did not know of
// the last one, and so on forever.
TEST_F(PinnedUpdates, APodThatComesBackToAnEmptyNodeStaysAfterTwoReturns) {
  Machine& n1 = machine("n1", {.methods = {}});
  pinned_database();
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    EXPECT_EQ(evictions(), 2u);
    n1.kill_agent();
  });
  after(15min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    EXPECT_EQ(evictions(), 2u) << story();
  });
  run_for(16min);
}

// A finalizer holds the deleted pod. The pod had finished before its deletion, so the drain does not have to wait for
// it.
TEST_F(Updates, AFinishedPodThatIsDeletedDuringTheDrainIsNotWaitedFor) {
  Machine& n1 = machine("n1");
  PodSpec done;
  done.phase = "Succeeded";
  done.metadata = {{"finalizers", {"example.com/never"}}};
  add(a_pod("job-0", done));
  PodSpec slow;
  slow.grace = 300;
  add(a_pod("slow-0", slow));
  after(2min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    cluster.delete_gracefully("pods", "shop", "job-0");
  });
  run_fleet(1h);
  EXPECT_EQ(n1.version(), "1.1") << story();
  EXPECT_FALSE(cluster.get("pods", "shop", "job-0").is_null());
}

// A pod that came while the node was schedulable does not count as one that comes back after evictions, so it is not
// skipped: it must leave before the reboot.
TEST_F(PinnedUpdates, PodsThatCameWhileSomebodyHadTheNodeOpenDoNotStay) {
  Machine& n1 = machine("n1", {.ignored_reboots = 1});
  after(1min, [&] {
    EXPECT_EQ(state("n1"), "rebooting") << story();
    uncordon("n1");
    pinned_database();
  });
  after(3min, [&] {
    EXPECT_EQ(evictions(), 0u);
    cordon("n1");
    n1.block("apt");  // so that the pod has time to come back before the reboot
  });
  after(30min, [&] { n1.block(""); });
  run_fleet();
  EXPECT_EQ(n1.version(), "1.1") << story();
  EXPECT_EQ(evictions(), 2u) << "it came once, and came back twice\n" << story();
}

// By default the drain waits for a pod that comes back after each eviction. More evictions would only restart it.
TEST_F(PinnedUpdates, APodThatComesBackToAnEmptyNodeIsWaitedForAfterTwoReturns) {
  options.drain.policy.pinned = drain::Treatment::park;
  checks.leaves_pinned_pods = false;
  Machine& n1 = machine("n1", {.methods = {}});
  pinned_database();
  after(15min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    EXPECT_EQ(evictions(), 2u) << story();
    EXPECT_FALSE(n1.shows_ready());
    EXPECT_THAT(
        story(),
        HasSubstr("shop/StatefulSet/db has created pods on this cordoned node 2 times; they are not evicted again"));
    n1.kill_agent();
  });
  after(30min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    EXPECT_EQ(evictions(), 2u) << story();
    checks.by_a_person([&] {
      cluster.remove("statefulsets", "shop", "db");
      cluster.remove("pods", "shop", "db-0");
    });
  });
  after(40min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    n1.shut_down();
  });
  run_fleet();
  expect_updated(n1);
}

}  // namespace
}  // namespace haulout::fleet
