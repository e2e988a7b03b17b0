#include "tests/drain/pipeline_fixture.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using testing::a_pod;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::terminating;

using testing::closed_budget;
using testing::PipelineTest;

TEST_F(PipelineTest, APodThatFinishesWhileItWaitsIsLeftAndThatIsSaid) {
  policy.finished = Treatment::skip;
  make();
  auto job = a_pod("job");
  job.annotations["karpenter.sh/do-not-disrupt"] = "true";
  plan({job});
  EXPECT_THAT(events, ElementsAre("parked job"));
  job.phase = k8s::PodPhase::succeeded;
  pipeline->pod_changed(job, now);
  EXPECT_THAT(events, ElementsAre("parked job", "left job"));
  EXPECT_TRUE(pipeline->clear());
}

TEST_F(PipelineTest, APodThatWasOverdueBeforeWeLookedIsStuckAMinuteLater) {
  make();
  auto pod = terminating(a_pod("old"), wall - 24h, 3600);
  plan({pod});
  pipeline->time_passed(now + 59s);
  EXPECT_FALSE(tracked(pod).stuck);
  pipeline->time_passed(now + 60s);
  EXPECT_TRUE(tracked(pod).stuck);
}

TEST_F(PipelineTest, AVeryLongGracePeriodDoesNotOverflow) {
  make();
  auto pod = a_pod("for ever");
  pod.grace_seconds = std::numeric_limits<std::int64_t>::max();
  plan({pod});
  take();
  accept(pod);
  pipeline->pod_changed(terminating(pod, wall, 4'000'000'000), now);
  pipeline->time_passed(now + 24h * 365 * 90);
  EXPECT_FALSE(tracked(pod).stuck);
}

TEST_F(PipelineTest, LatePodsGoThroughTheSameFilter) {
  policy.unmanaged = Treatment::refuse;
  make();
  plan({a_pod("a")});
  auto naked = a_pod("naked");
  naked.controller.reset();
  pipeline->pod_changed(a_pod("late"), now);
  pipeline->pod_changed(naked, now);
  EXPECT_THAT(take(), ElementsAre("a", "late"));
  EXPECT_EQ(tracked(naked).state, PodState::parked);
  EXPECT_EQ(tracked(naked).report.reason, "Unmanaged");
  EXPECT_THAT(events, ::testing::Contains("late-pod late"));
}

TEST_F(PipelineTest, AProtectedPodIsEvictedOnceItsAnnotationIsCleared) {
  make();
  auto pod = a_pod("p");
  pod.annotations["karpenter.sh/do-not-disrupt"] = "true";
  plan({pod});
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(tracked(pod).report.reason, "DoNotDisrupt");
  pod.annotations.clear();
  pipeline->pod_changed(pod, now);
  EXPECT_THAT(take(), ElementsAre("p"));
}

TEST_F(PipelineTest, AProtectionThatRunsOutIsNoticed) {
  make();
  auto pod = a_pod("p");
  pod.start_time = wall;
  pod.annotations["karpenter.sh/do-not-disrupt"] = "1h";
  plan({pod});
  EXPECT_THAT(take(), IsEmpty());
  wall += 61min;
  pipeline->time_passed(now);
  EXPECT_THAT(take(), ElementsAre("p"));
}

TEST_F(PipelineTest, APodThatFinishesWhileItWaitsIsLeft) {
  make();
  auto job = a_pod("job");
  plan({job});
  take();
  refuse(job, closed_budget);
  job.phase = k8s::PodPhase::succeeded;
  pipeline->pod_changed(job, now);
  EXPECT_TRUE(pipeline->clear());
  EXPECT_EQ(tracked(job).report.outcome, PodOutcome::skipped);
}

// After the evictions were accepted, a person labels the pods so that policy skips them, and removes the labels before
// the pods are deleted. If the pods kept their places, no pod could be evicted any more.
TEST_F(PipelineTest, WhatIsLeftAfterItsEvictionHoldsNoPlace) {
  policy.leave = {k8s::parse_label_selector("stays").value()};
  make();
  auto pods = pods_named({"a", "b", "c", "d", "e"});
  plan(pods);
  EXPECT_THAT(take(), SizeIs(5));
  for (k8s::Pod& pod : pods) {
    accept(pod);
    pod.labels = {{"stays", ""}};
    pipeline->pod_changed(pod, now);
    pod.labels.clear();
    pipeline->pod_changed(pod, now);
  }
  EXPECT_THAT(take(), SizeIs(5));
}

// Another client deletes a finished pod, and a pod that policy skips. The drain waits for neither.
TEST_F(PipelineTest, WhatIsLeftIsLeftUntilItHasGone) {
  policy.unmanaged = Treatment::skip;
  make();
  auto job = a_pod("job"), bare = a_pod("bare");
  job.phase = k8s::PodPhase::succeeded;
  bare.controller.reset();
  plan({job, bare});
  for (k8s::Pod* pod : {&job, &bare}) {
    *pod = terminating(*pod);
    pipeline->pod_changed(*pod, now);
    if (pod == &bare) pod->phase = k8s::PodPhase::failed;
    pipeline->pod_changed(*pod, now);
  }
  EXPECT_TRUE(pipeline->clear());
  EXPECT_THAT(events, IsEmpty());
  job.deletion_timestamp.reset();
  job.phase = k8s::PodPhase::running;
  pipeline->pod_listed(job, now, now);
  EXPECT_THAT(take(), ElementsAre("job")) << "an etcd was restored from a backup";
}

TEST_F(PipelineTest, WhatComesBackStoppedWithARestoredEtcdIsWaitedFor) {
  make();
  auto pod = a_pod("web");
  plan({pod});
  take_and_lose(pod);
  EXPECT_TRUE(pipeline->clear());
  pod = terminating(pod);
  pod.phase = k8s::PodPhase::failed;
  pipeline->pod_listed(pod, now, now);
  EXPECT_FALSE(pipeline->clear());
  EXPECT_EQ(tracked(pod).state, PodState::terminating);
}

// The pipeline knows the pod `unseen` only from a list, not from the watch. A later complete list does not contain the
// pod, so the pod counts as deleted.
TEST_F(PipelineTest, WhatAListDoesNotHaveAndWasThereBeforeHasGone) {
  make();
  plan({a_pod("a")});
  take();
  now += 1s;
  pipeline->reconcile(pods_named({"a", "unseen"}), now, now, wall);
  EXPECT_THAT(take(), ElementsAre("unseen"));
  now += 10s;
  const auto asked = now - 1s;
  pipeline->only_listed({{a_pod("a").uid, a_pod("a")}}, asked, now, wall);
  EXPECT_EQ(tracked(a_pod("a")).state, PodState::in_flight);
  EXPECT_EQ(tracked(a_pod("unseen")).state, PodState::vanished);
}

TEST_F(PipelineTest, APodThatARestoredEtcdBringsBackIsNotAskedForTwiceAtOnce) {
  PipelineOptions options;
  options.max_requests = 1;
  make(options);
  const auto pod = a_pod("a");
  plan({pod});
  EXPECT_THAT(take(), ElementsAre("a"));
  gone(pod);
  now += 1s;
  pipeline->pod_listed(pod, now, now);
  EXPECT_THAT(take(), IsEmpty());
  accept(pod);
  EXPECT_THAT(take(), ElementsAre("a"));
  accept(pod);
  plan({a_pod("b")});
  EXPECT_THAT(take(), ElementsAre("b")) << "no request counts as out for ever";
}

TEST_F(PipelineTest, AListThatIsOlderThanTheNewsOfAPodDoesNotUndoThem) {
  make();
  auto pod = a_pod("p");
  pod.resource_version = "99";
  pod.annotations["karpenter.sh/do-not-disrupt"] = "true";
  plan({pod});
  const auto before = pod;
  const auto asked = now;
  now += 1s;
  pod.resource_version = "100";
  pod.annotations.clear();
  pipeline->pod_changed(pod, now);
  pipeline->reconcile({before}, asked, now, wall);
  EXPECT_THAT(take(), ElementsAre("p"));
}

TEST_F(PipelineTest, AListThatIsNewerThanWhatTheWatchSaysLateCounts) {
  make();
  auto pod = a_pod("p");
  pod.annotations["karpenter.sh/do-not-disrupt"] = "true";
  plan({pod});
  const auto asked = now;
  now += 1s;
  pod.resource_version = "99";
  pipeline->pod_changed(pod, now);
  pod.resource_version = "100";
  pod.annotations.clear();
  pipeline->reconcile({pod}, asked, now, wall);
  EXPECT_THAT(take(), ElementsAre("p"));
}

TEST_F(PipelineTest, AListThatIsOlderThanTheNewsOfAPodTakesNothingAway) {
  make();
  plan({a_pod("a")});
  const auto asked = now;
  now += 1s;
  pipeline->pod_changed(a_pod("late"), now);
  pipeline->pod_changed(terminating(a_pod("late")), now);
  pipeline->only_listed({{a_pod("a").uid, a_pod("a")}}, asked, now, wall);
  EXPECT_EQ(tracked(a_pod("late")).state, PodState::terminating);
  pipeline->reconcile(pods_named({"a"}), asked, now, wall);
  EXPECT_EQ(tracked(a_pod("late")).state, PodState::terminating) << "it came while the list was on its way";
  // The pages of a list are from different moments, so a list may contain both a deleted pod and its namesake.
  pipeline->pod_listed(a_pod("replaced"), now, now + 1s);
  pipeline->pod_missing(a_pod("replaced").uid, now, now + 1s, wall);
  EXPECT_EQ(tracked(a_pod("replaced")).state, PodState::vanished);
  // A later list contained the pod, so the late answer to an earlier list proves nothing.
  pipeline->pod_listed(a_pod("a"), now + 5s, now + 6s);
  pipeline->pod_missing(a_pod("a").uid, now + 4s, now + 7s, wall);
  EXPECT_NE(tracked(a_pod("a")).state, PodState::vanished);
  pipeline->pod_missing(a_pod("a").uid, now + 8s, now + 9s, wall);
  EXPECT_EQ(tracked(a_pod("a")).state, PodState::vanished);
}

}  // namespace
}  // namespace haulout::drain
