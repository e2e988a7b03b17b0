// The pipeline with a guard of controllers: which pod is evicted next when an eviction fails, when its answer is lost,
// or when the waiting pod changes.
#include "drain/controller_guard.hpp"
#include "tests/drain/pipeline_fixture.hpp"

namespace haulout::drain::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PipelineGuardsTest : public PipelineTest {
 protected:
  // Two pods of one controller, of which one at a time may leave. The eviction of `a` is in flight, and `b` waits.
  void SetUp() override {
    Guards guards;
    guards.max_unavailable = Share{1, false};
    guard.emplace(guards, book.emplace());
    Controller controller;
    controller.ns = "shop";
    controller.kind = "Deployment";
    controller.name = "web";
    controller.uid = "deployment-uid";
    controller.replicas = 2;
    book->learned("rs-uid", controller, now);
    for (const auto& pod : {a, b}) book->pod_changed(pod.uid, &pod, now, wall);
    book->namespace_seen("shop");
    PipelineOptions options;
    options.guards = {&*guard};
    make(options);
    plan({a, b});
    ASSERT_THAT(take(), ElementsAre("a"));
    ASSERT_EQ(tracked(b).report.reason, "BlockedByControllerBudget");
  }
  const k8s::Pod a = a_pod("a");
  const k8s::Pod b = a_pod("b");
  std::optional<ControllerBook> book;
  std::optional<ControllerGuard> guard;
};

TEST_F(PipelineGuardsTest, ARefusedPodLetsItsSiblingGoAtOnce) {
  refuse(a, status_error(500, "InternalError", "", ""));
  EXPECT_THAT(take(), ElementsAre("b"));
}

TEST_F(PipelineGuardsTest, APodWhoseAnswerWasLostMayHaveLeft) {
  refuse(a, Error(Errc::timeout, "no answer"));
  EXPECT_THAT(take(), IsEmpty());
  now += 1min;
  EXPECT_THAT(take(), ElementsAre("a")) << "it takes nothing more";
  refuse(a, status_error(500, "InternalError", "", ""));
  EXPECT_THAT(take(), ElementsAre("b"));
}

// A guard that holds a pod, and notes which pods leave.
struct HoldsOne final : EvictionGuard {
  std::optional<Hold> held(const k8s::Pod& pod, TimePoint) override {
    return pod.name == name ? std::optional(Hold{"AwaitingReplacement", "held", TimePoint::max()}) : std::nullopt;
  }
  void leaving(const k8s::Pod& pod, Leaves leaves) override { told[pod.name] = leaves; }
  std::string name;
  std::map<std::string, Leaves> told;
};

// Otherwise a guard that counts the pod as leaving would hold another pod for ever.
TEST_F(PipelineGuardsTest, APodThatIsHeldAfterALostAnswerCountsAsLeavingOnlyForATime) {
  using Leaves = EvictionGuard::Leaves;
  HoldsOne holds;
  PipelineOptions options;
  options.guards = {&holds};
  make(options);
  plan({a});
  ASSERT_THAT(take(), ElementsAre("a"));
  refuse(a, Error(Errc::timeout, "no answer"));
  holds.name = "a";
  now += 1min;
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(holds.told["a"], Leaves::perhaps);
  now += 2min;
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(holds.told["a"], Leaves::no);
}

// A guard that holds all pods but one, and then none. It counts how often it was asked.
struct HoldsAllButOne final : EvictionGuard {
  std::optional<Hold> held(const k8s::Pod& pod, TimePoint) override {
    ++asked;
    return holds && pod.name != canary ? std::optional(Hold{"AwaitingReplacement", "held", TimePoint::max()})
                                       : std::nullopt;
  }
  void leaving(const k8s::Pod&, Leaves) override {}

  bool holds = true;
  std::string canary = "pod-0";
  int asked = 0;
};

// Twelve pods behind one budget, which allows all of them to leave. A guard has held all but the first, whose eviction
// was accepted, and has let them go.
class PodsThatWaitForTheirTurnTest : public PipelineTest {
 protected:
  void SetUp() override {
    PipelineOptions options;
    options.max_places = 0;
    options.guards = {&guard};
    make(options);
    const auto budget = a_budget("web", 12);
    pipeline->budget_changed(budget.uid, &budget, now);
    for (int i = 0; i < 12; ++i) pods.push_back(a_pod("pod-" + std::to_string(i)));
    plan(pods);
    ASSERT_THAT(take(), ElementsAre("pod-0"));
    accept(pods[0]);
    ASSERT_THAT(take(), IsEmpty()) << "the guard holds the others";
    ASSERT_EQ(pipeline->patience(), 0ms);
    guard.holds = false;
    pipeline->guards_changed();
    sent = take();
    ASSERT_THAT(sent, SizeIs(1)) << "one request at a time for each budget";
  }
  // Returns how often a batch of changed replacements makes the pipeline ask the guard.
  int asked_after_news() {
    guard.asked = 0;
    pipeline->guards_changed();
    EXPECT_THAT(take(), IsEmpty());
    return guard.asked;
  }

  HoldsAllButOne guard;
  std::vector<k8s::Pod> pods;
  std::vector<std::string> sent;
};

// The guard was once asked about each of these pods again after each batch of events, until the last one was sent.
TEST_F(PodsThatWaitForTheirTurnTest, TheGuardIsNotAskedBeforeTheirTurn) {
  EXPECT_EQ(asked_after_news(), 0);
}

// Only the answer of the server decides when the next of them is sent, as for pods that no guard ever held.
TEST_F(PodsThatWaitForTheirTurnTest, WatchEventsMayWait) {
  EXPECT_EQ(pipeline->patience(), Pipeline::patience_before);
}

TEST_F(PodsThatWaitForTheirTurnTest, TheGuardIsAskedBeforeEachIsSent) {
  guard.holds = true;
  guard.canary.clear();
  accept(a_pod(sent.front()));
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(pipeline->patience(), 0ms);
  guard.holds = false;
  pipeline->guards_changed();
  EXPECT_THAT(take(), SizeIs(1));
}

// A place becomes free when the view shows that a pod is deleted.
TEST_F(PodsThatWaitForTheirTurnTest, EventsAreUrgentIfTheyWaitForAPlace) {
  PipelineOptions options;
  options.max_places = 1;
  options.guards = {&guard};
  make(options);
  guard.holds = true;
  plan(pods);
  ASSERT_THAT(take(), ElementsAre("pod-0"));
  guard.holds = false;
  pipeline->guards_changed();
  ASSERT_THAT(take(), IsEmpty());
  EXPECT_EQ(pipeline->patience(), 0ms);
}

// Otherwise it would seem to be held again, and events would be urgent until it is sent.
TEST_F(PodsThatWaitForTheirTurnTest, APodKeepsItsTurnWhileTooManyRequestsAreInFlight) {
  PipelineOptions options;
  options.max_places = 0;
  options.max_requests = 1;
  options.guards = {&guard};
  make(options);
  guard.holds = true;
  plan(pods);
  ASSERT_THAT(take(), ElementsAre("pod-0"));
  guard.holds = false;
  pipeline->guards_changed();
  ASSERT_THAT(take(), IsEmpty());
  EXPECT_EQ(tracked(pods[1]).hold, TrackedPod::Hold::turn);
  accept(pods[0]);
  EXPECT_THAT(take(), SizeIs(1));
}

// Its budget closes while it waits for its turn, and opens again.
TEST_F(PodsThatWaitForTheirTurnTest, APodWhoseBudgetClosesIsWokenByItsBudget) {
  auto budget = a_budget("web", 0);
  pipeline->budget_changed(budget.uid, &budget, now);
  accept(a_pod(sent.front()));
  ASSERT_THAT(take(), SizeIs(1)) << "a signal";
  budget.disruptions_allowed = 1;
  budget.resource_version += "0";
  pipeline->budget_changed(budget.uid, &budget, now);
  EXPECT_THAT(take(), SizeIs(1));
}

TEST_F(PodsThatWaitForTheirTurnTest, EventsAreUrgentIfOneWaitsForItsBudget) {
  refuse(a_pod(sent.front()), closed_budget);
  EXPECT_EQ(pipeline->patience(), 0ms);
}

TEST_F(PipelineGuardsTest, APodThatIsHeldIsLookedAtAgainWhenItChanges) {
  k8s::Pod failing = b;
  failing.ready = false;
  failing.resource_version += "0";
  pipeline->pod_changed(failing, now);
  EXPECT_THAT(take(), ElementsAre("b")) << "it takes nothing from those that are Ready";
}

}  // namespace
}  // namespace haulout::drain::testing
