// Pods that a controller brings back to the cordoned node, and pods that only seem to be such pods.
#include "tests/drain/pipeline_fixture.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using testing::a_pod;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::owned_by;
using testing::PipelineTest;
using ::testing::SizeIs;

class PinnedPods : public PipelineTest {
 protected:
  // Evicts the pod until the next one with its name counts as pinned. That one is the same pod with a new UID, or `as`.
  k8s::Pod pin(k8s::Pod pod, std::optional<k8s::Pod> as = {}) {
    pod.uid = "uid-0";
    plan({pod});
    now += 10s;
    take_and_lose(pod);
    pod.uid = "uid-1";
    pipeline->pod_changed(pod, now);
    take_and_lose(pod);
    if (as) pod = *std::move(as);
    pod.uid = "uid-2";
    pipeline->pod_changed(pod, now);
    EXPECT_EQ(tracked(pod).report.reason, "PodPinned");
    return pod;
  }
};

TEST_F(PinnedPods, AControllerThatComesBackTwiceIsPinned) {
  make();
  auto incarnation = [](int n) {
    auto pod = owned_by(a_pod("db-0"), "apps/v1", "StatefulSet", "db", "sts-uid");
    pod.uid = "uid-" + std::to_string(n);
    return pod;
  };
  plan({incarnation(0)});
  now += 10s;
  for (int n = 0; n < 2; ++n) {
    EXPECT_THAT(take(), ElementsAre("db-0")) << n;
    accept(incarnation(n));
    gone(incarnation(n));
    pipeline->pod_changed(incarnation(n + 1), now);
  }
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(tracked(incarnation(2)).report.reason, "PodPinned");
  EXPECT_THAT(tracked(incarnation(2)).report.message, ::testing::HasSubstr("do not tolerate the cordon"));
  now += 24h;
  pipeline->time_passed(now);
  pipeline->pod_changed(incarnation(2), now);
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_FALSE(pipeline->clear());
}

// The pods were created while the node was schedulable, and do not count as returns. The pipeline learns of them only
// 20 s after the next cordon, for example because the watch of pods was broken.
TEST_F(PinnedPods, PodsOfATimeBeforeTheCordonAreNoReturnsHoweverLateTheyAreHeardOf) {
  make();
  auto incarnation = [this](int n) {
    auto pod = owned_by(a_pod("db-0"), "apps/v1", "StatefulSet", "db", "sts-uid");
    pod.uid = "uid-" + std::to_string(n);
    pod.created = wall;
    return pod;
  };
  std::vector<k8s::Pod> pods;
  for (int n = 0; n < 4; ++n) pods.push_back(incarnation(n));
  plan({pods[0]});
  now += 60s;
  wall += 60s;
  pipeline->set_paused(true, now);
  pipeline->set_paused(false, now);
  now += 20s;
  wall += 20s;
  for (std::size_t n = 0; n < 3; ++n) {
    EXPECT_THAT(take(), ElementsAre("db-0")) << n;
    accept(pods.at(n));
    gone(pods.at(n));
    pipeline->pod_changed(pods.at(n + 1), now);
  }
  EXPECT_THAT(take(), ElementsAre("db-0"));
}

TEST_F(PinnedPods, PodsOnTheirWayDuringTheCordonAreNoReturns) {
  make();
  auto replica = [](int n) { return a_pod("web-" + std::to_string(n)); };
  plan({replica(0)});
  take_and_lose(replica(0));
  now += 1s;
  for (int n = 1; n < 5; ++n) pipeline->pod_changed(replica(n), now);
  EXPECT_THAT(take(), SizeIs(4));
}

// Pods that tolerate the cordon count as returns from the first moment. Without this rule, a pod that was deleted at
// once was evicted five times a second.
TEST_F(PinnedPods, PodsThatTolerateTheCordonAreReturnsFromTheFirstMoment) {
  make();
  auto replica = [](int n) {
    auto pod = a_pod("web-" + std::to_string(n));
    pod.tolerates_unschedulable = true;
    return pod;
  };
  plan({replica(0)});
  for (int n = 0; n < 2; ++n) {
    take_and_lose(replica(n));
    now += 100ms;
    pipeline->pod_changed(replica(n + 1), now);
  }
  EXPECT_EQ(tracked(replica(2)).report.reason, "PodPinned");
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(PinnedPods, PodsThatCameWhileSomebodyHadUncordonedTheNodeAreNoReturns) {
  make();
  auto replica = [](int n) { return a_pod("web-" + std::to_string(n)); };
  plan({replica(0)});
  take_and_lose(replica(0));
  now += 1min;
  pipeline->set_paused(true, now);
  pipeline->pod_changed(replica(1), now);
  pipeline->pod_changed(replica(2), now);
  now += 1min;
  pipeline->set_paused(false, now);
  now += 1s;
  pipeline->pod_changed(replica(3), now);
  EXPECT_THAT(take(), SizeIs(3));
}

// A person uncordons the node, and pods are bound to it. The watch of the pods reports them before the watch of the
// node reports the uncordon, so they count as pinned. When the uncordon is known, they do not count as returns any
// more.
TEST_F(PinnedPods, PodsOfAnUncordonThatIsSeenLateAreNoReturns) {
  make();
  auto replica = [](int n) { return a_pod("web-" + std::to_string(n)); };
  plan({replica(0)});
  take_and_lose(replica(0));
  now += 1min;
  for (int n = 1; n < 4; ++n) pipeline->pod_changed(replica(n), now);
  EXPECT_EQ(tracked(replica(3)).report.reason, "PodPinned");
  pipeline->set_paused(true, now);
  now += 1min;
  pipeline->set_paused(false, now);
  EXPECT_THAT(take(), SizeIs(3));
}

TEST_F(PinnedPods, PodsOfAnUncordonThatOnlyTheNewCordonShowsAreNoReturns) {
  make();
  auto replica = [this](int n) {
    auto pod = a_pod("web-" + std::to_string(n));
    pod.created = wall;
    return pod;
  };
  plan({replica(0)});
  take_and_lose(replica(0));
  now += 1min;
  wall += 1min;
  for (int n = 1; n < 4; ++n) pipeline->pod_changed(replica(n), now);
  ASSERT_EQ(tracked(replica(3)).report.reason, "PodPinned");
  const auto before = replica(4);
  now += 10s;
  wall += 10s;
  pipeline->cordoned_anew(now);
  pipeline->pod_changed(before, now);
  EXPECT_THAT(take(), SizeIs(4));
}

TEST_F(PinnedPods, AreLeftOnceTheyHaveFinished) {
  make();
  auto last = pin(a_pod("job"));
  last.phase = k8s::PodPhase::succeeded;
  pipeline->pod_changed(last, now);
  EXPECT_TRUE(pipeline->clear());
}

TEST_F(PinnedPods, AreNotPinnedAnyMoreOnceTheyWereLeftForAWhile) {
  policy.pod_selector = *k8s::parse_label_selector("app=db");
  make();
  auto pod = a_pod("db-0");
  pod.labels["app"] = "db";
  auto last = pin(pod);
  last.labels.clear();
  pipeline->pod_changed(last, now);
  ASSERT_TRUE(pipeline->clear());
  last.labels["app"] = "db";
  pipeline->pod_changed(last, now);
  EXPECT_THAT(take(), ElementsAre("db-0"));
  accept(last);
  gone(last);
  EXPECT_TRUE(pipeline->clear());
  pipeline->time_passed(now);
}

// A pinned pod is deleted, and a restored etcd backup brings it back. It does not count as pinned, and is evicted.
TEST_F(PinnedPods, DeletedPodsAreNotPinnedAnyMore) {
  make();
  const auto last = pin(a_pod("db-0"));
  gone(last);
  ASSERT_TRUE(pipeline->clear());
  now += 1s;
  pipeline->pod_listed(last, now, now);
  EXPECT_THAT(take(), ElementsAre("db-0"));
}

// A person removes the cordon and sets it again. So the pod does not count as pinned any more, and its annotation
// forbids its eviction.
TEST_F(PinnedPods, AnnotationsProtectPodsThatAreNotPinnedAnyMore) {
  make();
  auto protected_pod = a_pod("db-0");
  protected_pod.annotations["karpenter.sh/do-not-disrupt"] = "true";
  auto last = pin(a_pod("db-0"), protected_pod);
  pipeline->set_paused(true, now);
  pipeline->set_paused(false, now);
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(tracked(last).report.reason, "DoNotDisrupt");
  last.annotations.clear();
  pipeline->pod_changed(last, now);
  EXPECT_THAT(take(), ElementsAre("db-0"));
}

// The person who runs the node cannot change the tolerations of a vendor's operator. So by policy, the drain leaves a
// pod that comes back after its evictions.
TEST_F(PinnedPods, APinnedPodIsLeftWherePolicySaysSo) {
  PipelineOptions options;
  options.leaves_pinned = true;
  make(options);
  auto pod = owned_by(a_pod("typha"), "apps/v1", "ReplicaSet", "typha-1", "rs");
  pod.tolerates_unschedulable = true;
  pod = pin(pod);
  EXPECT_TRUE(pipeline->clear());
  EXPECT_EQ(tracked(pod).report.outcome, PodOutcome::skipped);
  EXPECT_THAT(tracked(pod).report.message, ::testing::HasSubstr("tolerate the taint"));
  EXPECT_EQ(events.back(), "left typha");
  // The left pod continues to change: the kubelet updates its status, and somebody sets a label.
  pod.ready = !pod.ready;
  pod.labels["changed"] = "yes";
  pipeline->pod_changed(pod, now);
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_TRUE(pipeline->clear());
  // If the node was schedulable in between, the pod does not count as a return any more.
  pipeline->set_paused(true, now);
  EXPECT_FALSE(pipeline->clear());
  pipeline->set_paused(false, now);
  EXPECT_THAT(take(), ElementsAre("typha"));
}

// Earlier drains recorded that the pods of this controller came back each time that the node was empty. So its pods
// count as pinned without an eviction, until the node has been schedulable.
TEST_F(PinnedPods, AControllerWhoseReturnsWereRecordedIsPinnedAtOnce) {
  for (const bool leaves : {false, true}) {
    PipelineOptions options;
    options.leaves_pinned = leaves;
    options.pinned_controllers = {"shop/ReplicaSet/typha-1"};
    make(options);
    const auto of = [](const char* name, const char* controller) {
      return owned_by(a_pod(name), "apps/v1", "ReplicaSet", controller, controller);
    };
    const k8s::Pod known = of("known", "typha-1"), late = of("late", "typha-1"), other = of("other", "typha-2");
    plan({known, other});
    EXPECT_THAT(take(), ElementsAre("other")) << leaves;
    pipeline->pod_changed(late, now);
    EXPECT_THAT(take(), IsEmpty());
    for (const k8s::Pod& pod : {known, late}) {
      EXPECT_EQ(tracked(pod).report.reason, "PodPinned") << leaves;
      EXPECT_EQ(tracked(pod).state, leaves ? PodState::left : PodState::parked);
      EXPECT_THAT(tracked(pod).report.message,
                  ::testing::StartsWith(
                      "ReplicaSet typha-1 has created pods on this cordoned node each time that the node was empty: "));
    }
    // The node was schedulable in between, so none of these pods counts as a return.
    pipeline->set_paused(true, now);
    pipeline->set_paused(false, now);
    EXPECT_THAT(take(), ElementsAre("known", "late")) << leaves;
  }
}

// The first return of a pod does not count as pinned: only a pod that comes back more than once is left.
TEST_F(PinnedPods, AFirstReturnIsEvictedAlsoWherePinnedPodsAreLeft) {
  PipelineOptions options;
  options.leaves_pinned = true;
  make(options);
  auto pod = owned_by(a_pod("typha"), "apps/v1", "ReplicaSet", "typha-1", "rs");
  plan({pod});
  now += 10s;
  take_and_lose(pod);
  pod.uid = "uid-1";
  pipeline->pod_changed(pod, now);
  EXPECT_THAT(take(), ElementsAre("typha"));
}

}  // namespace
}  // namespace haulout::drain
