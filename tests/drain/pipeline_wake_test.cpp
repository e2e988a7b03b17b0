// Which pod is tried next, what wakes a parked pod, and which waits must end.
#include "tests/drain/pipeline_fixture.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using testing::a_budget;
using testing::a_pod;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::PipelineTest;
using testing::status_error;
using testing::terminating;
using ::testing::UnorderedElementsAre;

// An eviction that hangs in a webhook takes a place for as long as the server waits for the webhook. Pods whose
// evictions fail again and again in this way must not take all places for ever.
TEST_F(PipelineTest, P9_PodsThatFailAgainAndAgainLeavePlacesToTheOthers) {
  make({.max_places = 2});
  const auto failing = pods_named({"a", "b", "c", "d"});
  auto pods = failing;
  pods.push_back(a_pod("z"));
  plan(pods);
  std::vector<std::string> sent;
  for (int round = 0; round < 6; ++round) {
    const auto evictions = pipeline->take_evictions(now);
    now += 10s;
    for (const auto& pod : evictions) {
      sent.push_back(pod.name);
      refuse(pod, Error(Errc::timeout, "the webhook hangs"));
    }
  }
  EXPECT_THAT(sent, Contains("z"));
}

// Twelve pods with a budget each, so that the drain may request all of them at once.
class UnhurriedTest : public PipelineTest {
 protected:
  std::vector<k8s::Pod> pods;

  void begin(PipelineOptions options, std::int32_t allowed = 1) {
    make(options);
    for (int i = 0; i < 12; ++i) {
      const std::string app = "app-" + std::to_string(i);
      auto budget = a_budget(app, allowed);
      budget.selector = k8s::LabelSelector({{"app", k8s::LabelSelector::Operator::in, {app}}});
      pipeline->budget_changed(budget.uid, &budget, now);
      pods.push_back(a_pod(app));
      pods.back().labels["app"] = app;
    }
    plan(pods);
  }
};

TEST_F(UnhurriedTest, WatchEventsMayWaitWhileOnlyAnswersCanAllowAnEviction) {
  begin({.max_places = 0, .max_requests = 10});
  EXPECT_TRUE(pipeline->unhurried()) << "all are about to be sent";
  EXPECT_EQ(take().size(), 10u);
  EXPECT_GT(pipeline->patience(), 100ms) << "no more requests may be out";
  for (int i = 0; i < 10; ++i) accept(pods[static_cast<std::size_t>(i)]);
  take();
  EXPECT_TRUE(pipeline->unhurried()) << "none is left to be sent";
  EXPECT_LE(pipeline->patience(), 50ms) << "all may vanish in one moment";
  for (int i = 0; i < 3; ++i) gone(pods[static_cast<std::size_t>(i)]);
  EXPECT_FALSE(pipeline->unhurried()) << "the end is near";
}

TEST_F(UnhurriedTest, NotWhileABudgetMayOpen) {
  begin({.max_places = 0, .max_requests = 10}, 0);
  EXPECT_EQ(take().size(), 10u) << "signals";
  EXPECT_FALSE(pipeline->unhurried());
}

TEST_F(UnhurriedTest, NotWhileAPlaceMayBecomeFree) {
  begin({.max_places = 5, .max_requests = 10});
  EXPECT_EQ(take().size(), 5u);
  EXPECT_FALSE(pipeline->unhurried());
}

// The pipeline does not track the budgets of a skipped pod. It must find them when the pod is not skipped any more.
TEST_F(PipelineTest, ABudgetOfAPodThatIsNoLongerSkippedCounts) {
  make();
  auto pod = a_pod("a");
  pod.annotations["kubernetes.io/config.mirror"] = "x";
  plan({pod});
  const auto budget = a_budget("web", 0);
  pipeline->budget_changed(budget.uid, &budget, now);
  pod.annotations.clear();
  pod.resource_version = "2";
  pipeline->pod_changed(pod, now);
  EXPECT_THAT(take(), ElementsAre("a"));
  EXPECT_EQ(events.back(), "signal-sent a") << "the budget is closed";
}

TEST_F(PipelineTest, AnEventRightAfterARefusalIsNotLost) {
  make();
  auto pod = a_pod("a");
  plan({pod});
  for (int i = 0; i < 2; ++i) {
    now += 1min;
    take();
    refuse(pod, status_error(400, ""));
  }
  now += 1ms;
  pod.labels["ready-to-go"] = "true";
  pipeline->pod_changed(pod, now);
  EXPECT_LE(pipeline->next_wake(now), now + 1s) << "the webhook may allow it now";
  now = pipeline->next_wake(now);
  EXPECT_THAT(take(), ElementsAre("a"));
}

TEST_F(PipelineTest, AProtectionThatCameWhileTheEvictionWasOutIsRespected) {
  make();
  auto refused = a_pod("refused"), throttled = a_pod("throttled");
  plan({refused, throttled});
  take();
  for (auto* pod : {&refused, &throttled}) {
    pod->annotations["karpenter.sh/do-not-disrupt"] = "true";
    pipeline->pod_changed(*pod, now);
  }
  refuse(refused, Error(Errc::reset, "lost"));
  refuse(throttled, Error(Errc::unreachable, "refused"));
  EXPECT_EQ(tracked(refused).report.reason, "DoNotDisrupt");
  EXPECT_EQ(tracked(throttled).report.reason, "DoNotDisrupt");
  now += 1h;
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(PipelineTest, APodThatTheServerDoesNotKnowIsLookedForInAList) {
  make();
  const auto pod = a_pod("a");
  plan({pod});
  take();
  refuse(pod, status_error(404, "NotFound", "pods"));
  EXPECT_FALSE(pipeline->any_in_doubt()) << "the watch has the first word";
  now = pipeline->next_wake(now);
  take();
  refuse(pod, status_error(404, "NotFound", "pods"));
  EXPECT_TRUE(pipeline->any_in_doubt());
  pipeline->reconcile({}, now, now, wall);
  EXPECT_TRUE(pipeline->clear());
}

TEST_F(PipelineTest, AnOverlapIsAskedAgainOnlyWhenItsBudgetsChangeNotTheirCounts) {
  make();
  const auto pod = a_pod("a");
  auto one = a_budget("one", 1), two = a_budget("two", 1);
  pipeline->budget_changed(one.uid, &one, now);
  pipeline->budget_changed(two.uid, &two, now);
  plan({pod});
  take();
  refuse(pod, status_error(500, "", "", "",
                           "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
                           "support."));
  now += 1s;
  one.current_healthy = 2;
  pipeline->budget_changed(one.uid, &one, now);
  EXPECT_THAT(take(), IsEmpty());
  pipeline->budget_changed(two.uid, nullptr, now);
  EXPECT_THAT(take(), ElementsAre("a"));
}

TEST_F(PipelineTest, P10_ABudgetsEventIsNoReasonToAskAWebhookAgain) {
  make();
  const auto pod = a_pod("a");
  auto budget = a_budget("web", 1);
  pipeline->budget_changed(budget.uid, &budget, now);
  plan({pod});
  take();
  Error denied = status_error(429, "TooManyRequests", "", "", "admission webhook \"a\" denied the request: not yet");
  denied.retry_after = 20s;
  refuse(pod, denied);
  now += 1s;
  budget.current_healthy = 2;
  pipeline->budget_changed(budget.uid, &budget, now);
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(PipelineTest, P10_WhatAWebhookRefusedAMomentAgoIsNotAskedForInTheSameMoment) {
  const Error down = status_error(500, "InternalError", "", "",
                                  "Internal error occurred: failed calling webhook \"a.example.com\": failed to call "
                                  "webhook: Post \"https://a.shop.svc:443/\": connection refused");
  make();
  const auto first = a_pod("a"), second = a_pod("b");
  plan({first});
  ASSERT_THAT(take(), ElementsAre("a"));
  refuse(first, down);
  now += 5s;
  pipeline->pod_changed(second, now);
  ASSERT_THAT(take(), UnorderedElementsAre("a", "b")) << "one of its pods in turn, and one that it has not seen";
  refuse(second, down);
  accept(first);
  EXPECT_THAT(take(), IsEmpty());
  ASSERT_EQ(pipeline->next_wake(now), now + Backoff::minimum);
  now = pipeline->next_wake(now);
  EXPECT_THAT(take(), ElementsAre("b"));
}

// The disruption controller may count the eviction and remove its entry in disruptedPods before the drain receives the
// answer. The pipeline must not count the eviction again then.
TEST_F(PipelineTest, AnEvictionThatTheBudgetHasCountedIsNotCountedTwice) {
  make({.max_places = 0});
  const auto pods = pods_named({"a", "b"});
  auto budget = a_budget("web", 2);
  pipeline->budget_changed(budget.uid, &budget, now);
  plan(pods);
  EXPECT_THAT(take(), ElementsAre("a"));
  budget.disruptions_allowed = 1;
  budget.disrupted_pods = {{"a", std::nullopt}};
  pipeline->budget_changed(budget.uid, &budget, now);
  budget.disrupted_pods.clear();
  budget.current_healthy = 2;
  pipeline->budget_changed(budget.uid, &budget, now);
  accept(pods[0]);
  EXPECT_THAT(take(), ElementsAre("b"));
}

TEST_F(PipelineTest, ATerminatingPodThatARestoreBringsBackIsEvictedAgain) {
  make();
  const auto pod = a_pod("a");
  plan({pod});
  take();
  pipeline->pod_changed(terminating(pod), now);  // the watch event arrives before the answer
  accept(pod);
  now += 1s;
  wall += 1s;
  pipeline->pod_listed(pod, now, now + 1ms);
  EXPECT_EQ(pipeline->places_taken(), 0u);
  EXPECT_THAT(take(), ElementsAre("a"));
}

TEST_F(PipelineTest, TheLongestRetryAfterOfSeveralAnswersCounts) {
  make({.max_places = 0});
  const auto pods = pods_named({"a", "b"});
  plan(pods);
  take();
  Error busy = status_error(429, "");
  busy.peer->structured = false;
  busy.retry_after = 1s;
  refuse(pods[0], busy);
  busy.retry_after = 30s;
  refuse(pods[1], busy);
  EXPECT_GE(pipeline->next_wake(now), now + 30s);
  EXPECT_EQ(tracked(pods[0]).report.reason, "Throttled") << "P8: what it waits for has a reason";
}

TEST_F(PipelineTest, WhenItWasAcceptedIsToldByTheAnswerEvenWhereTheWatchWasFaster) {
  make();
  const auto pods = pods_named({"a", "b"});
  plan(pods);
  const WallTime whole_second = wall;
  wall += 800ms;
  take();
  for (const auto& pod : pods) pipeline->pod_changed(terminating(pod, whole_second + 30s), now);
  gone(pods[1]);
  wall += 5ms;
  for (const auto& pod : pods) accept(pod);
  EXPECT_EQ(tracked(pods[0]).report.evicted_at, wall) << "not 800 ms before it was asked for";
  EXPECT_EQ(tracked(pods[1]).report.evicted_at, wall - 5ms) << "not after it has vanished";
}

TEST_F(PipelineTest, APodThatAnotherClientDeletedDuringTheRequestIsNotReportedAsEvicted) {
  make();
  const auto pod = a_pod("a");
  plan({pod});
  take();
  gone(pod);
  refuse(pod, status_error(404, "NotFound", "pods"));
  EXPECT_EQ(tracked(pod).report.outcome, PodOutcome::gone);
  EXPECT_FALSE(tracked(pod).report.evicted_at);
}

}  // namespace
}  // namespace haulout::drain
