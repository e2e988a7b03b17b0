// Requests for pods whose budgets are exhausted, and for pods that a webhook denies, or that wait for a webhook that
// cannot be called.
#include "tests/drain/pipeline_fixture.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using testing::a_budget;
using testing::a_pod;
using testing::closed_budget;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::PipelineTest;
using ::testing::SizeIs;
using testing::status_error;
using testing::terminating;

class SignalsTest : public PipelineTest {
 protected:
  k8s::PodDisruptionBudget budget = a_budget("web", 0);

  void see_budget() { pipeline->budget_changed(budget.uid, &budget, now); }
  void see_open_budget() {
    const auto open = a_budget("web", 1);
    pipeline->budget_changed(open.uid, &open, now);
  }
  void begin(const std::vector<k8s::Pod>& pods, PipelineOptions options = {}) {
    make(options);
    see_budget();
    plan(pods);
  }
  // Returns all requests that are sent within `span`, with their times. A budget refuses each of them at once.
  std::vector<std::pair<Duration, std::string>> sent_in(Duration span) {
    std::vector<std::pair<Duration, std::string>> sent;
    const TimePoint began = now;
    while (now < began + span) {
      const auto evictions = pipeline->take_evictions(now);
      for (const auto& pod : evictions) {
        sent.emplace_back(now - began, pod.name);
        refuse(pod, closed_budget);
      }
      if (evictions.empty()) now = std::min(began + span, pipeline->next_wake(now));
    }
    return sent;
  }
  static Error webhook_says(int code, const std::string& what) {
    return status_error(code, "", "", "", "admission webhook \"a.example.com\" denied the request: " + what);
  }
  static Error webhook_is_down() {
    return status_error(500, "InternalError", "", "",
                        "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: "
                        "Post \"https://guard.hooks.svc:443/\": EOF");
  }
};

// If a server throttles everything for an hour, the drain sends it signals no more often than for an exhausted budget.
TEST_F(SignalsTest, P10_ASignalThatIsThrottledAgainIsSentAsSeldomAsAnyOther) {
  begin({a_pod("a")});
  const Error throttled = status_error(429, "TooManyRequests", "", "", "too many requests, please try again later");
  std::size_t sent = 0;
  for (const TimePoint end = now + 1h; now < end; now = std::min(end, pipeline->next_wake(now)))
    for (const auto& pod : pipeline->take_evictions(now)) {
      ++sent;
      refuse(pod, throttled);
    }
  EXPECT_GE(sent, 50u);
  EXPECT_LE(sent, 122u);
  // When the budget allows a disruption, the pod is evicted as soon as the server accepts requests.
  see_open_budget();
  now += Backoff::longest_retry_after;
  EXPECT_THAT(take(), ElementsAre("a"));
}

// A webhook that is slow for one budget's pods delays the requests for another budget's pods by at most one second.
TEST_F(SignalsTest, ASignalThatTakesItsTimeLetsAnotherGo) {
  make({.max_requests = 1});
  std::vector<k8s::Pod> pods = pods_named({"a", "b"});
  for (k8s::Pod& pod : pods) {
    k8s::PodDisruptionBudget own = a_budget(pod.name, 0);
    pod.labels = {{"app", pod.name}};
    own.selector = *k8s::parse_label_selector("app=" + pod.name);
    pipeline->budget_changed(own.uid, &own, now);
  }
  plan(pods);
  EXPECT_THAT(take(), ElementsAre("a"));
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(pipeline->next_wake(now), now + 1s);
  now += 1s;
  EXPECT_THAT(take(), ElementsAre("b"));
}

TEST_F(SignalsTest, P10_EachPodIsAskedForOnceOneAtATimeAndThenOneInTurn) {
  begin(pods_named({"a", "b", "c"}), {.max_places = 0});
  EXPECT_THAT(take(), ElementsAre("a"));
  EXPECT_THAT(take(), IsEmpty()) << "one request per budget at a time";
  refuse(a_pod("a"), closed_budget);
  EXPECT_THAT(take(), ElementsAre("b"));
  refuse(a_pod("b"), closed_budget);
  EXPECT_THAT(take(), ElementsAre("c"));
  refuse(a_pod("c"), closed_budget);
  const auto sent = sent_in(30min);
  ASSERT_GE(sent.size(), 30u);
  EXPECT_LE(sent.size(), 60u);
  Duration before{};
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_GE(sent[i].first - before, Signals::shortest) << i;
    EXPECT_LE(sent[i].first - before, Signals::longest + 1s) << i;
    EXPECT_EQ(sent[i].second, pods_named({"a", "b", "c"})[i % 3].name) << "in turn";
    before = sent[i].first;
  }
}

TEST_F(SignalsTest, P10_HundredPodsBehindOneBudgetAreNoStorm) {
  std::vector<k8s::Pod> pods;
  for (int i = 0; i < 100; ++i) pods.push_back(a_pod("web-" + std::to_string(i)));
  begin(pods);
  EXPECT_LE(sent_in(10min).size(), 100u + 20u);
}

TEST_F(SignalsTest, TakesNeitherPlaceNorLane) {
  const auto held = pods_named({"a", "b"});
  auto free = a_pod("free", "other");
  make({.max_places = 1});
  see_budget();
  plan({held[0], held[1], free});
  const auto first = take();
  EXPECT_THAT(first, ::testing::UnorderedElementsAre("free")) << "no place is free for the signal";
  accept(free);
  gone(free);
  EXPECT_THAT(take(), ElementsAre("a"));
  EXPECT_EQ(pipeline->places_taken(), 0u);
  budget.disruptions_allowed = 1;
  see_budget();
  EXPECT_THAT(take(), ElementsAre("b")) << "at once, although a signal is under way";
  EXPECT_EQ(events.back(), "eviction-sent b");
}

TEST_F(SignalsTest, ABudgetThatOpensWhileOurSignalIsUnderWayIsAskedAgainAtOnce) {
  const auto pod = a_pod("a");
  begin({pod});
  EXPECT_THAT(take(), ElementsAre("a"));
  now += 500ms;
  budget.disruptions_allowed = 1;
  see_budget();
  EXPECT_THAT(take(), IsEmpty()) << "one request for a pod at a time";
  refuse(pod, closed_budget);
  EXPECT_THAT(take(), ElementsAre("a"));
  EXPECT_EQ(events.back(), "eviction-sent a");
}

TEST_F(SignalsTest, OneThatIsAcceptedIsAnEviction) {
  const auto pod = a_pod("a");
  begin({pod, a_pod("b")});
  take();
  accept(pod);
  EXPECT_EQ(tracked(pod).state, PodState::terminating);
  EXPECT_EQ(pipeline->places_taken(), 1u);
  EXPECT_THAT(events, Contains("evicted a"));
  budget.disruptions_allowed = 1;
  see_budget();
  pipeline->pod_changed(terminating(pod), now);
  gone(pod);
  EXPECT_EQ(tracked(pod).report.outcome, PodOutcome::evicted);
}

TEST_F(SignalsTest, APodThatStaysWaitsAsBefore) {
  const auto pod = a_pod("a");
  begin({pod});
  take();
  EXPECT_TRUE(pipeline->any_held_by_budget());
  EXPECT_TRUE(pipeline->any_parked());
  EXPECT_EQ(pipeline->progress().waiting, 1u);
  EXPECT_EQ(tracked(pod).report.outcome, PodOutcome::waiting);
  refuse(pod, closed_budget);
  EXPECT_EQ(std::count(events.begin(), events.end(), "parked a"), 1);
  EXPECT_EQ(std::count(events.begin(), events.end(), "resumed a"), 0);
}

TEST_F(SignalsTest, AChangedPodOrBudgetIsAskedForAgainButNotWithoutEnd) {
  auto pod = a_pod("a");
  begin({pod});
  take();
  refuse(pod, closed_budget);
  now += 1s;
  EXPECT_THAT(take(), IsEmpty());
  pod.labels["migrates"] = "true";
  pipeline->pod_changed(pod, now);
  EXPECT_THAT(take(), ElementsAre("a"));
  refuse(pod, closed_budget);
  now += 1s;
  ++budget.generation;
  ++budget.observed_generation;
  see_budget();
  EXPECT_THAT(take(), ElementsAre("a"));
  refuse(pod, closed_budget);
  std::size_t sent = 0;
  for (int i = 0; i < 600; ++i, now += 1s) {
    pod.labels["migrates"] = std::to_string(i);
    pipeline->pod_changed(pod, now);
    ++budget.generation;
    ++budget.observed_generation;
    see_budget();
    const auto evictions = pipeline->take_evictions(now);
    sent += evictions.size();
    for (const auto& each : evictions) refuse(each, closed_budget);
  }
  EXPECT_GE(sent, 18u);
  EXPECT_LE(sent, 20u) << "two a minute";
}

// The counts of an exhausted budget change often, and a webhook does not see them. So a change of the counts is no
// reason to request an eviction again.
TEST_F(SignalsTest, OtherCountsOfAClosedBudgetAreNoReason) {
  begin({a_pod("a")});
  take();
  refuse(a_pod("a"), closed_budget);
  now += 1s;
  budget.current_healthy = 2;
  see_budget();
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(SignalsTest, OneWhoseAnswerIsLostIsSentAgainSoon) {
  begin({a_pod("a")});
  take();
  refuse(a_pod("a"), Error(Errc::reset, "lost"));
  EXPECT_LE(pipeline->next_wake(now), now + 1s) << "nobody may have seen it";
}

TEST_F(SignalsTest, P10_OneThatFailsAgainAndAgainIsSentEverMoreRarely) {
  for (const Error& error : {Error(Errc::reset, "lost"), status_error(500, "InternalError")}) {
    begin({a_pod("a")});
    std::size_t sent = 0;
    const TimePoint began = now;
    while (now < began + 10min) {
      const auto evictions = pipeline->take_evictions(now);
      sent += evictions.size();
      for (const auto& pod : evictions) refuse(pod, error);
      if (evictions.empty()) now = std::min(began + 10min, pipeline->next_wake(now));
    }
    EXPECT_LE(sent, 200u);
    EXPECT_GE(sent, 60u);
    EXPECT_EQ(tracked(a_pod("a")).report.reason, "ServerError");
  }
}

TEST_F(SignalsTest, WhatAWebhookSaidToItIsTold) {
  const auto pod = a_pod("a");
  begin({pod});
  take();
  refuse(pod, webhook_says(429, "the migration was triggered"));
  EXPECT_EQ(tracked(pod).report.reason, "AdmissionDenied");
  now += 20s;
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(tracked(pod).report.reason, "AdmissionDenied") << "nothing was said since";
  budget.disruptions_allowed = 1;
  see_budget();
  EXPECT_THAT(take(), ElementsAre("a")) << "it has opened";
}

// After a webhook has admitted one pod, the drain requests one more, because the webhook may admit the pods one at a
// time.
TEST_F(SignalsTest, P10_AWebhookThatLetsOnePodPastIsAskedAboutOneMore) {
  make({.max_places = 0});
  const auto pods = pods_named({"a", "b", "c", "d"});
  plan(pods);
  take();
  for (const auto& pod : pods) refuse(pod, webhook_says(400, "not yet"));
  now += 10s;
  const auto again = take();
  ASSERT_THAT(again, SizeIs(4));
  accept(pods[0]);
  for (int i = 1; i < 4; ++i) refuse(pods[static_cast<std::size_t>(i)], webhook_says(400, "not yet"));
  now += 100ms;
  EXPECT_THAT(take(), IsEmpty()) << "those have been asked for since";
  now += 30s;
  EXPECT_THAT(take(), SizeIs(3));
  refuse(pods[1], webhook_says(400, "not yet"));
  refuse(pods[2], webhook_says(400, "not yet"));
  now += 500ms;
  accept(pods[3]);
  EXPECT_THAT(take(), ElementsAre("b"));
}

TEST_F(SignalsTest, P10_OfThePodsOfAWebhookThatIsDownOneInTurnIsAskedFor) {
  make({.max_places = 0});
  std::vector<k8s::Pod> pods;
  for (int i = 0; i < 300; ++i) pods.push_back(a_pod("web-" + std::to_string(i)));
  plan(pods);
  std::size_t sent = 0;
  const TimePoint began = now;
  while (now < began + 1h) {
    const auto evictions = pipeline->take_evictions(now);
    sent += evictions.size();
    for (const auto& pod : evictions) refuse(pod, webhook_is_down());
    if (evictions.empty()) now = std::min(began + 1h, pipeline->next_wake(now));
  }
  EXPECT_LE(sent, 300u + 10u + 3600u / 15u);
  EXPECT_GE(sent, 300u + 3600u / 35u);
  const auto last = pipeline->take_evictions(now = pipeline->next_wake(now));
  ASSERT_THAT(last, SizeIs(1));
  EXPECT_THAT(take(), IsEmpty());
  accept(last[0]);
  EXPECT_THAT(take(), SizeIs(10)) << "it is back: all may go, as many as may be out";
}

TEST_F(SignalsTest, AnAnswerThatIsLostSaysNothingOfTheWebhook) {
  make({.max_places = 0});
  plan(pods_named({"a", "b"}));
  take();
  refuse(a_pod("a"), webhook_is_down());
  refuse(a_pod("b"), webhook_is_down());
  now += 2s;
  EXPECT_THAT(take(), ElementsAre("a"));
  refuse(a_pod("a"), Error(Errc::timeout, "no answer"));
  EXPECT_THAT(take(), IsEmpty());
  now += 3s;
  EXPECT_THAT(take(), ElementsAre("b"));
}

TEST_F(SignalsTest, AWebhookThatIsDownAndAClosedBudgetHoldNoOtherPodBack) {
  make({.max_places = 0});
  auto free = a_pod("z");
  free.labels["app"] = "free";
  budget.selector = *k8s::parse_label_selector("app=held");
  see_budget();
  auto held = a_pod("a");
  held.labels["app"] = "held";
  plan({held, free});
  EXPECT_THAT(take(), ::testing::UnorderedElementsAre("a", "z"));
  refuse(held, webhook_is_down());
  refuse(free, webhook_is_down());
  for (int i = 0; i < 20 && tracked(free).report.attempts < 3; ++i) {
    now = pipeline->next_wake(now);
    for (const auto& pod : pipeline->take_evictions(now)) refuse(pod, webhook_is_down());
  }
  EXPECT_GE(tracked(free).report.attempts, 3u);
  EXPECT_GE(tracked(held).report.attempts, 3u);
}

}  // namespace
}  // namespace haulout::drain
