#include "tests/drain/pipeline_fixture.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using testing::a_budget;
using testing::a_pod;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::status_error;
using testing::terminating;

using testing::closed_budget;
using testing::PipelineTest;

TEST_F(PipelineTest, PlacesAreTakenBeforeTheEvictionAndGivenBackWhenThePodHasVanished) {
  make({.max_places = 2});
  const auto pods = pods_named({"a", "b", "c", "d"});
  plan(pods);
  EXPECT_THAT(take(), ElementsAre("a", "b"));
  accept(pods[0]);
  EXPECT_THAT(take(), IsEmpty()) << "accepted is not vanished";
  pipeline->pod_changed(terminating(pods[0]), now);
  EXPECT_THAT(take(), IsEmpty());
  gone(pods[0]);
  EXPECT_THAT(take(), ElementsAre("c"));
  refuse(pods[1], Error(Errc::reset, "cut"));
  EXPECT_THAT(take(), ElementsAre("d"));
  EXPECT_EQ(pipeline->places_taken(), 2u);
}

TEST_F(PipelineTest, APlaceIsGivenBackAMinuteAfterTheGracePeriod) {
  make({.max_places = 1});
  auto stuck = a_pod("a");
  stuck.grace_seconds = 30;
  plan({stuck, a_pod("b")});
  EXPECT_THAT(take(), ElementsAre("a"));
  accept(stuck);
  pipeline->pod_changed(terminating(stuck), now);
  now += 89s;
  pipeline->time_passed(now);
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(pipeline->next_wake(now), now + 1s);
  now += 1s;
  pipeline->time_passed(now);
  EXPECT_THAT(take(), ElementsAre("b"));
  EXPECT_EQ(tracked(stuck).report.reason, "PodStuckTerminating");
  EXPECT_FALSE(pipeline->clear());
}

// A webhook admits the eviction request as a dry run, and deletes the pod itself 100 s later. The time after which the
// pod counts as stuck and loses its place (its grace period and one minute) begins only with that deletion.
TEST_F(PipelineTest, TheGracePeriodOfAnAcceptedEvictionBeginsWhenThePodIsDeleted) {
  make({.max_places = 1});
  auto moved = a_pod("a");
  moved.grace_seconds = 30;
  plan({moved, a_pod("b")});
  ASSERT_THAT(take(), ElementsAre("a"));
  accept(moved);
  now += 100s;
  wall += 100s;
  pipeline->time_passed(now);
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_FALSE(tracked(moved).stuck);
  pipeline->pod_changed(terminating(moved, wall), now);
  now += 89s;
  wall += 89s;
  pipeline->time_passed(now);
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(pipeline->next_wake(now), now + 1s);
  now += 1s;
  pipeline->time_passed(now);
  EXPECT_THAT(take(), ElementsAre("b"));
  EXPECT_TRUE(tracked(moved).stuck);
}

TEST_F(PipelineTest, P9_AnAcceptedEvictionThatNeverShowsGivesItsPlaceToAnother) {
  make({.max_places = 1});
  const auto never = a_pod("a"), other = a_pod("b");
  plan({never, other});
  ASSERT_THAT(take(), ElementsAre("a"));
  accept(never);
  now = pipeline->next_wake(now);
  pipeline->time_passed(now);
  EXPECT_THAT(take(), ElementsAre("b")) << "what was not tried yet comes first";
  EXPECT_FALSE(tracked(never).stuck);
  take_and_lose(other);
  EXPECT_THAT(take(), ElementsAre("a"));
}

// The pod was stuck and had lost its place. Its deletion is undone, because etcd is restored from a backup, and then
// the pod is evicted again. It loses its place again if it is stuck again.
TEST_F(PipelineTest, AfterARestoredEtcdTheSecondEvictionAlsoReleasesThePlace) {
  make({.max_places = 1});
  auto stuck = a_pod("a");
  stuck.grace_seconds = 30;
  plan({stuck, a_pod("b")});
  take();
  accept(stuck);
  pipeline->pod_changed(terminating(stuck), now);
  now += 90s;
  pipeline->time_passed(now);
  ASSERT_TRUE(tracked(stuck).stuck);
  now += 1s;
  pipeline->pod_listed(stuck, now, now);
  ASSERT_THAT(take(), ElementsAre("a"));
  EXPECT_FALSE(tracked(stuck).stuck);
  accept(stuck);
  pipeline->pod_changed(terminating(stuck), now);
  EXPECT_THAT(take(), IsEmpty());
  now += 90s;
  pipeline->time_passed(now);
  EXPECT_THAT(take(), ElementsAre("b"));
  EXPECT_EQ(tracked(stuck).report.reason, "PodStuckTerminating");
}

TEST_F(PipelineTest, P9_AParkedPodHoldsNoPlaceAndNoTierUp) {
  make({.max_places = 1});
  auto urgent = a_pod("urgent"), other = a_pod("other");
  urgent.priority = -5;
  plan({urgent, other});
  EXPECT_THAT(take(), ElementsAre("urgent"));
  refuse(urgent, closed_budget);
  EXPECT_EQ(tracked(urgent).state, PodState::parked);
  EXPECT_THAT(take(), ElementsAre("other"));
}

TEST_F(PipelineTest, TheNextTierStartsWhenTheOneBeforeIsAdmitted) {
  make({.max_places = 0});
  auto first = a_pod("first"), second = a_pod("second"), dns = a_pod("dns");
  first.priority = second.priority = -1;
  dns.priority_class = "system-cluster-critical";
  plan({dns, first, second});
  EXPECT_THAT(take(), ElementsAre("first", "second"));
  accept(first);
  EXPECT_THAT(take(), IsEmpty());
  accept(second);
  EXPECT_THAT(take(), ElementsAre("dns")) << "admitted, not vanished";
}

// If the drain evicted its own pod while another pod waits for its budget, no process would remain to evict that pod.
// So it evicts its own pod when all others are deleted.
TEST_F(PipelineTest, TheOwnPodGoesWhenAllOthersHaveVanished) {
  make({.max_places = 0, .own_uid = a_pod("own").uid});
  const auto own = a_pod("own"), held = a_pod("held"), web = a_pod("web");
  plan({own, held, web});
  EXPECT_THAT(take(), ElementsAre("held", "web"));
  refuse(held, closed_budget);
  accept(web);
  EXPECT_THAT(take(), IsEmpty());
  gone(web);
  EXPECT_THAT(take(), IsEmpty()) << "one is parked";
  now += 60s;
  EXPECT_THAT(take(), ElementsAre("held"));
  accept(held);
  EXPECT_THAT(take(), IsEmpty()) << "one is terminating";
  gone(held);
  EXPECT_THAT(take(), ElementsAre("own"));
}

TEST_F(PipelineTest, PodsThatARuleEvictsLastGoWhenAllOthersHaveVanished) {
  policy.rules = {parse_pod_rule("app=log=last").value(), parse_pod_rule("app=job=wait-completed").value()};
  make({.max_places = 0, .own_uid = a_pod("own").uid});
  auto log = a_pod("log"), trace = a_pod("trace"), job = a_pod("job");
  log.labels = trace.labels = {{"app", "log"}};
  log.priority = trace.priority = -5;
  job.labels = {{"app", "job"}};
  const auto own = a_pod("own"), web = a_pod("web");
  plan({own, log, trace, job, web});
  EXPECT_THAT(take(), ElementsAre("web"));
  accept(web);
  gone(web);
  EXPECT_THAT(take(), IsEmpty()) << "the job still runs";
  EXPECT_FALSE(pipeline->hopeless());
  gone(job);
  EXPECT_THAT(take(), ElementsAre("log", "trace"));
  accept(log);
  accept(trace);
  gone(log);
  EXPECT_THAT(take(), IsEmpty()) << "one of the last pods is terminating";
  gone(trace);
  EXPECT_THAT(take(), ElementsAre("own"));
}

TEST_F(PipelineTest, SelectedPodsOfDaemonSetsGoAfterThoseThatARuleEvictsLast) {
  policy.rules = {parse_pod_rule("app=log=last").value()};
  policy.evict_daemon_sets = {k8s::parse_label_selector("app=node").value()};
  make({.max_places = 0, .own_uid = a_pod("own").uid});
  auto log = a_pod("log"),
       collector = testing::owned_by(a_pod("collector"), "apps/v1", "DaemonSet", "collector", "ds-uid");
  log.labels = {{"app", "log"}};
  collector.labels = {{"app", "node"}};
  const auto own = a_pod("own"), web = a_pod("web");
  plan({collector, own, log, web});
  for (const auto& next : {web, log, collector}) {
    EXPECT_THAT(take(), ElementsAre(next.name));
    accept(next);
    EXPECT_THAT(take(), IsEmpty());
    gone(next);
  }
  EXPECT_THAT(take(), ElementsAre("own"));
}

TEST_F(PipelineTest, ADrainIsHopelessIfAllPodsButTheOwnOneAre) {
  make({.max_places = 0, .own_uid = a_pod("own").uid});
  const auto own = a_pod("own"), web = a_pod("web");
  plan({own, web});
  EXPECT_THAT(take(), ElementsAre("web"));
  EXPECT_FALSE(pipeline->hopeless());
  refuse(web, status_error(400, "BadRequest", "", ""));
  EXPECT_TRUE(pipeline->hopeless());
}

TEST_F(PipelineTest, EveryAnswerToAnEvictionHasAReason) {
  make();
  const auto pods = pods_named({"missing", "replaced", "refused"});
  plan(pods);
  EXPECT_EQ(take().size(), 3u);
  refuse(pods[0], status_error(404, "NotFound", "pods"));
  refuse(pods[1], status_error(409, "Conflict", "Pod"));
  refuse(pods[2], status_error(405, "MethodNotAllowed"));
  EXPECT_EQ(tracked(pods[0]).report.reason, "AwaitingWatch");
  EXPECT_EQ(tracked(pods[1]).report.reason, "AwaitingWatch");
  EXPECT_EQ(tracked(pods[2]).report.reason, "Rejected");
}

TEST_F(PipelineTest, OneRequestInFlightPerBudget) {
  make({.max_places = 0});
  const auto pods = pods_named({"a", "b", "c"});
  const auto budget = a_budget("web", 2);
  pipeline->budget_changed(budget.uid, &budget, now);
  plan(pods);
  EXPECT_THAT(take(), ElementsAre("a"));
  EXPECT_THAT(take(), IsEmpty());
  pipeline->pod_changed(terminating(pods[0]), now);
  EXPECT_THAT(take(), IsEmpty()) << "its answer is still out";
  accept(pods[0]);
  EXPECT_THAT(take(), ElementsAre("b"));
  accept(pods[1]);
  EXPECT_THAT(take(), ElementsAre("c"));
  EXPECT_EQ(events.back(), "signal-sent c") << "the budget allows two and both are taken";
  EXPECT_EQ(tracked(pods[2]).report.reason, "BlockedByBudget");
}

TEST_F(PipelineTest, ABudgetThatOpensWakesItsPodsAtOnce) {
  make();
  const auto pod = a_pod("a");
  auto budget = a_budget("web", 0);
  pipeline->budget_changed(budget.uid, &budget, now);
  plan({pod});
  EXPECT_THAT(take(), ElementsAre("a")) << "a signal";
  refuse(pod, closed_budget);
  EXPECT_GT(pipeline->next_wake(now), now + 2s) << "without an event it is asked again, but not soon";
  now += 1s;
  EXPECT_THAT(take(), IsEmpty());
  budget.disruptions_allowed = 1;
  pipeline->budget_changed(budget.uid, &budget, now);
  EXPECT_THAT(take(), ElementsAre("a"));
}

TEST_F(PipelineTest, P10_AnEventRightAfterARefusalIsAnsweredAShortWhileLater) {
  make();
  const auto pod = a_pod("a");
  auto budget = a_budget("web", 1);
  pipeline->budget_changed(budget.uid, &budget, now);
  plan({pod});
  for (const Duration spacing : {20ms, 40ms}) {
    EXPECT_THAT(take(), ElementsAre("a"));
    refuse(pod, closed_budget);
    now += 5ms;
    pipeline->budget_changed(budget.uid, &budget, now);
    EXPECT_THAT(take(), IsEmpty());
    EXPECT_EQ(pipeline->next_wake(now), now + spacing - 5ms) << "the event is not forgotten either";
    now += spacing - 5ms;
  }
}

TEST_F(PipelineTest, ABudgetThatGoesOrNoLongerSelectsWakesItsPods) {
  make();
  auto one = a_pod("one", "shop"), two = a_pod("two", "bank");
  auto shop = a_budget("web", 0, "shop"), bank = a_budget("web", 0, "bank");
  pipeline->budget_changed(shop.uid, &shop, now);
  pipeline->budget_changed(bank.uid, &bank, now);
  plan({one, two});
  EXPECT_THAT(take(), ElementsAre("two", "one")) << "signals";
  refuse(one, closed_budget);
  refuse(two, closed_budget);
  now += 1s;
  EXPECT_THAT(take(), IsEmpty());
  pipeline->budget_changed(shop.uid, nullptr, now);
  EXPECT_THAT(take(), ElementsAre("one"));
  bank.selector = *k8s::parse_label_selector("app=other");
  pipeline->budget_changed(bank.uid, &bank, now);
  EXPECT_THAT(take(), ElementsAre("two"));
}

TEST_F(PipelineTest, AnEventThatKeepsComingDoesNotBecomeARequestEachTime) {
  make();
  const auto pod = a_pod("a");
  auto budget = a_budget("web", 1);
  pipeline->budget_changed(budget.uid, &budget, now);
  plan({pod});
  std::size_t requests = 0;
  for (int i = 0; i < 1000; ++i, now += 1ms) {
    pipeline->budget_changed(budget.uid, &budget, now);
    const auto sent = take();
    requests += sent.size();
    if (!sent.empty()) refuse(pod, closed_budget);
  }
  EXPECT_LT(requests, 20u);
  EXPECT_GT(requests, 1u);
}

TEST_F(PipelineTest, ThrottlingStopsTheWholeClientAndBlamesNoPod) {
  make({.max_places = 0});
  const auto pods = pods_named({"a", "b", "c"});
  plan({pods[0], pods[1]});
  EXPECT_THAT(take(), SizeIs(2));
  Error busy = status_error(429, "");
  busy.peer->structured = false;
  busy.retry_after = 8s;
  refuse(pods[0], busy);
  refuse(pods[1], busy);
  pipeline->pod_changed(pods[2], now);
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(tracked(pods[0]).state, PodState::queued);
  const auto wake = pipeline->next_wake(now);
  EXPECT_GE(wake, now + 8s);
  EXPECT_LE(wake, now + 10s);
  now = wake;
  EXPECT_THAT(take(), SizeIs(3));
  EXPECT_EQ(std::count(events.begin(), events.end(), "throttled a"), 1);
  EXPECT_EQ(std::count(events.begin(), events.end(), "throttled b"), 0);
}

TEST_F(PipelineTest, ATerminatingPodIsNotEvictedAgain) {
  make();
  const auto own = a_pod("ours");
  const auto foreign = terminating(a_pod("foreign"));
  plan({own, foreign});
  EXPECT_THAT(take(), ElementsAre("ours"));
  EXPECT_EQ(pipeline->places_taken(), 1u) << "what somebody else deleted takes no place";
  // The answer was lost, but the watch shows that the pod is terminating.
  pipeline->pod_changed(terminating(own), now);
  refuse(own, Error(Errc::reset, "lost"));
  now += 1h;
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(tracked(own).report.attempts, 1u);
  gone(own);
  gone(foreign);
  EXPECT_TRUE(pipeline->clear());
  EXPECT_EQ(tracked(foreign).report.outcome, PodOutcome::gone);
}

// A pod without a grace period is deleted at once: the watch shows no terminating pod between the eviction and the end.
// If the answer to the eviction was lost, such a pod counts as evicted.
TEST_F(PipelineTest, APodThatIsGoneAfterALostAnswerWasEvicted) {
  make();
  const auto lost = a_pod("lost");
  const auto refused = a_pod("refused");
  plan({lost, refused});
  EXPECT_THAT(take(), SizeIs(2));
  refuse(lost, Error(Errc::reset, "lost"));
  refuse(refused, status_error(500, "InternalError"));
  gone(lost);
  gone(refused);
  EXPECT_EQ(tracked(lost).report.outcome, PodOutcome::evicted);
  EXPECT_EQ(tracked(refused).report.outcome, PodOutcome::gone);
}

TEST_F(PipelineTest, NothingIsSentWhilePaused) {
  make();
  plan({a_pod("a")});
  pipeline->set_paused(true, now);
  EXPECT_THAT(take(), IsEmpty());
  pipeline->set_paused(false, now);
  EXPECT_THAT(take(), ElementsAre("a"));
}

// Any answer other than a throttle proves that the server has capacity again. So the wait after the next throttle is as
// short as after the first one.
TEST_F(PipelineTest, AThrottleAfterAnotherAnswerIsAsShortAsTheFirst) {
  make();
  const auto pods = pods_named({"a"});
  plan(pods);
  const auto refused_with = [&](const Error& error) {
    EXPECT_THAT(take(), ElementsAre("a"));
    refuse(pods[0], error);
    const TimePoint asked = std::exchange(now, pipeline->next_wake(now));
    return pipeline->throttled_until() - asked;
  };
  Error throttled = status_error(429, "");
  throttled.peer->structured = false;
  EXPECT_LE(refused_with(throttled), 800ms);
  for (int i = 0; i < 5; ++i) refused_with(throttled);
  EXPECT_GE(refused_with(throttled), 10s);
  refused_with(status_error(409, "Conflict", "Pod"));
  const Duration again = refused_with(throttled);
  EXPECT_GT(again, 0s);
  EXPECT_LE(again, 800ms);
}

TEST_F(PipelineTest, OnlyHopelessWhenEveryPodLeftIs) {
  make();
  const auto pods = pods_named({"a", "b"});
  plan(pods);
  take();
  refuse(pods[0], status_error(405, "MethodNotAllowed"));
  EXPECT_FALSE(pipeline->hopeless());
  refuse(pods[1], status_error(415, "UnsupportedMediaType"));
  EXPECT_TRUE(pipeline->hopeless());
}

TEST_F(PipelineTest, P10_TheNextWakeIsNeverInThePast) {
  make({.max_places = 1});
  const auto pods = pods_named({"a", "b", "c", "d"});
  plan(pods);
  for (int i = 0; i < 2000; ++i) {
    for (const auto& pod : pipeline->take_evictions(now)) {
      const auto kind = rng.between(std::uint64_t{0}, std::uint64_t{3});
      if (kind == 0) refuse(pod, Error(Errc::unreachable, "refused"));
      if (kind == 1) refuse(pod, closed_budget);
      if (kind == 2) refuse(pod, Error(Errc::reset, "reset"));
      if (kind == 3) refuse(pod, status_error(409, "Conflict", "Pod"));
    }
    const auto wake = pipeline->next_wake(now);
    ASSERT_GT(wake, now);
    ASSERT_NE(wake, TimePoint::max()) << "everything waits for ever";
    now = wake;
  }
}

}  // namespace
}  // namespace haulout::drain
