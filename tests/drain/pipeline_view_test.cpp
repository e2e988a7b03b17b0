// Results of lists and watches that are late, repeated or contradictory.
#include "tests/drain/pipeline_fixture.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using testing::a_budget;
using testing::a_pod;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::owned_by;
using ::testing::SizeIs;
using testing::status_error;
using testing::terminating;

using testing::closed_budget;
using testing::PipelineTest;

TEST_F(PipelineTest, AVanishedPodEndsItsWaitWhateverItWasDoing) {
  make();
  const auto pods = pods_named({"flying", "parked", "queued", "terminating"});
  plan(pods);
  EXPECT_THAT(take(), SizeIs(4));
  refuse(pods[1], closed_budget);
  refuse(pods[2], closed_budget);
  pipeline->pod_changed(terminating(pods[3]), now);
  for (const auto& pod : pods) gone(pod);
  EXPECT_TRUE(pipeline->clear());
  EXPECT_EQ(tracked(pods[0]).report.outcome, PodOutcome::evicted) << "its eviction was under way";
  EXPECT_EQ(tracked(pods[1]).report.outcome, PodOutcome::gone);
  accept(pods[0]);
  gone(pods[0]);
  EXPECT_TRUE(pipeline->clear());
  EXPECT_EQ(std::count(events.begin(), events.end(), "vanished flying"), 1);
}

TEST_F(PipelineTest, AnAcceptedEvictionThatNeverShowsIsSentAgain) {
  make();
  auto slow = a_pod("slow");
  slow.grace_seconds = 3600;
  plan({slow});
  take();
  accept(slow);
  pipeline->pod_changed(slow, now);  // the server writes the pod's condition first
  EXPECT_THAT(take(), IsEmpty());
  now = pipeline->next_wake(now);
  pipeline->time_passed(now);
  EXPECT_THAT(take(), ElementsAre("slow"));
  accept(slow);
  pipeline->pod_changed(terminating(slow), now);
  now += 600s;
  pipeline->time_passed(now);
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(PipelineTest, AVanishedPodComesBackOnlyByAList) {
  make();
  const auto pod = a_pod("a");
  plan({pod});
  take();
  accept(pod);
  gone(pod);
  pipeline->pod_changed(pod, now);
  EXPECT_TRUE(pipeline->clear()) << "an event that is replayed";
  pipeline->reconcile({pod}, now + 1ms, now + 2ms, wall);
  EXPECT_FALSE(pipeline->clear());
  EXPECT_THAT(take(), ElementsAre("a"));
}

TEST_F(PipelineTest, AListThatWasUnderWayBringsNoVanishedPodBack) {
  make();
  const auto pod = a_pod("a");
  plan({pod});
  take();
  accept(pod);
  const TimePoint asked = now;
  now += 1ms;
  wall -= 1h;  // a person sets the wall clock back
  gone(pod);
  pipeline->reconcile({pod}, asked, now + 1ms, wall);
  EXPECT_TRUE(pipeline->clear());
}

TEST_F(PipelineTest, APodThatTheServerTwiceSaysIsGoneIsLookedFor) {
  for (const Error& gone : {status_error(404, "NotFound", "pods"), status_error(409, "Conflict", "Pod")}) {
    make();
    const auto pod = a_pod("a");
    plan({pod});
    for (const bool in_doubt : {false, true}) {
      EXPECT_THAT(take(), ElementsAre("a"));
      refuse(pod, gone);
      EXPECT_EQ(pipeline->any_in_doubt(), in_doubt) << gone.message();
      now += 30s;
    }
    pipeline->reconcile({}, now, now, wall);
    EXPECT_TRUE(pipeline->clear()) << gone.message();
  }
}

TEST_F(PipelineTest, AListThatWasAskedForBeforeTheEvictionTakesNothingBack) {
  make();
  const auto pod = a_pod("a");
  plan({pod});
  const TimePoint asked = now;
  now += 2ms;
  wall += 1h;
  take();
  pipeline->pod_changed(terminating(pod), now);
  accept(pod);
  pipeline->reconcile({pod}, asked, now + 1ms, wall);
  EXPECT_EQ(tracked(pod).state, PodState::terminating);
  EXPECT_EQ(pipeline->places_taken(), 1u);
}

// Regression test: the limit of terminating pods was exceeded. A delayed event had taken the place from a pod that a
// list had meanwhile shown as terminating.
TEST_F(PipelineTest, AnEventThatWasHeldBackTakesNoDeletionBack) {
  make({.max_places = 1});
  const auto pods = pods_named({"a", "b"});
  plan(pods);
  EXPECT_THAT(take(), ElementsAre("a"));
  accept(pods[0]);
  pipeline->reconcile({terminating(pods[0]), pods[1]}, now, now, wall);
  auto condition_written = pods[0];
  condition_written.resource_version = "2";
  pipeline->pod_changed(condition_written, now + 1ms);
  EXPECT_EQ(tracked(pods[0]).state, PodState::terminating);
  EXPECT_TRUE(tracked(pods[0]).pod.terminating());
  EXPECT_EQ(pipeline->places_taken(), 1u);
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(PipelineTest, AListTellsOfDeletionsThatTheWatchHasLost) {
  make();
  const auto leaving = a_pod("leaving"), waiting = a_pod("waiting");
  plan({leaving, waiting});
  take();
  accept(leaving);
  pipeline->pod_changed(terminating(leaving), now);
  refuse(waiting, closed_budget);
  pipeline->reconcile({waiting}, now, now, wall);
  EXPECT_EQ(tracked(leaving).state, PodState::vanished);
  EXPECT_EQ(tracked(waiting).state, PodState::parked);
}

TEST_F(PipelineTest, GoneByAnswerWaitsForTheView) {
  make();
  const auto pod = a_pod("a");
  plan({pod});
  take();
  refuse(pod, status_error(404, "NotFound", "pods"));
  EXPECT_FALSE(pipeline->clear());
  EXPECT_EQ(pipeline->places_taken(), 0u);
  gone(pod);
  EXPECT_TRUE(pipeline->clear());
}

// The answer to the pod's eviction hangs on a dead connection. The pod becomes overdue, is left, and is then deleted.
// When its request has failed, the next pod of the same budget may be evicted.
TEST_F(PipelineTest, AnOverduePodThatGoesBeforeItsAnswerKeepsNoLane) {
  make_impatient(1s);
  auto budget = a_budget("web", 2);
  pipeline->budget_changed(budget.uid, &budget, now);
  const auto a = a_pod("a"), b = a_pod("b");
  plan({a, b});
  ASSERT_THAT(take(), ::testing::ElementsAre("a"));
  pipeline->pod_changed(terminating(a, wall, 1), now);
  now += 5s;
  wall += 5s;
  pipeline->time_passed(now);
  EXPECT_EQ(tracked(a).state, PodState::left);
  gone(a);
  now += 34s;
  refuse(a, Error(Errc::timeout, "no answer"));
  budget.resource_version = "77";
  pipeline->budget_changed(budget.uid, &budget, now);
  EXPECT_THAT(take(), ::testing::ElementsAre("b"));
}

TEST_F(PipelineTest, WhatABackupBringsBackWhileItsAnswerIsOutIsAskedAgainAfterwards) {
  make();
  const auto a = a_pod("a");
  plan({a});
  take();
  pipeline->pod_changed(terminating(a), now);
  now += 10s;
  pipeline->pod_listed(a, now - 1s, now);
  EXPECT_THAT(take(), ::testing::IsEmpty()) << "the answer is still out";
  now += 30s;
  refuse(a, Error(Errc::timeout, "no answer"));
  EXPECT_THAT(take(), ::testing::ElementsAre("a"));
}

TEST_F(PipelineTest, AnOverduePodThatWeEvictedStaysInTheReport) {
  make_impatient(1s);
  const auto ours = a_pod("ours"), theirs = a_pod("theirs");
  plan({ours, theirs});
  take();
  refuse(theirs, closed_budget);
  accept(ours);
  for (const auto& pod : {ours, theirs}) pipeline->pod_changed(terminating(pod, wall, 1), now);
  now += 5s;
  wall += 5s;
  pipeline->time_passed(now);
  EXPECT_EQ(tracked(ours).report.outcome, PodOutcome::skipped);
  gone(ours);
  gone(theirs);
  const auto& report = tracked(ours).report;
  EXPECT_EQ(report.outcome, PodOutcome::evicted);
  EXPECT_EQ(report.attempts, 1u);
  EXPECT_EQ(report.vanished_at, wall);
  EXPECT_EQ(tracked(theirs).report.outcome, PodOutcome::gone);
  EXPECT_TRUE(pipeline->clear());
}

// When the pod's containers have ended, its deletionTimestamp moves to that moment. Restoring an older backup moves it
// to the later time again.
TEST_F(PipelineTest, AnOverduePodIsWaitedForAgainWhenABackupGivesItMoreTime) {
  make_impatient(20s);
  const auto pod = a_pod("a");
  plan({pod});
  take();
  accept(pod);
  auto stopped = terminating(pod, wall, 1);
  stopped.phase = k8s::PodPhase::failed;
  pipeline->pod_changed(stopped, now);
  now += 25s;
  wall += 25s;
  pipeline->time_passed(now);
  ASSERT_EQ(tracked(pod).report.reason, terminating_too_long);
  EXPECT_TRUE(pipeline->clear());
  auto restored = stopped;
  restored.deletion_timestamp = wall + 10s;
  pipeline->pod_listed(restored, now, now);
  EXPECT_FALSE(pipeline->clear());
  gone(pod);
  EXPECT_TRUE(pipeline->clear());
}

// The kubelet sets the phase Failed when it has stopped a pod. So only the phase from before the pod was terminating
// shows whether it had finished.
TEST_F(PipelineTest, WhatAPodWasBeforeItWasOnItsWayOutIsKept) {
  make();
  auto stopped = a_pod("stopped"), finished = a_pod("finished");
  finished.phase = k8s::PodPhase::succeeded;
  auto not_seen_before = terminating(a_pod("not-seen-before"));
  not_seen_before.phase = k8s::PodPhase::failed;
  plan({stopped, finished, not_seen_before});
  for (k8s::Pod* pod : {&stopped, &finished}) *pod = terminating(*pod);
  stopped.phase = k8s::PodPhase::failed;
  for (const k8s::Pod& pod : {stopped, finished}) pipeline->pod_changed(pod, now);
  EXPECT_FALSE(tracked(stopped).had_finished);
  EXPECT_TRUE(tracked(finished).had_finished);
  EXPECT_FALSE(tracked(not_seen_before).had_finished);
}

}  // namespace
}  // namespace haulout::drain
