#include "tests/drain/diagnoses_fixture.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using testing::a_budget;
using testing::a_pod;
using testing::DiagnosesTest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::status_error;
using testing::terminating;

TEST_F(DiagnosesTest, NothingToSay) {
  begin();
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(DiagnosesTest, PdbZeroIsRaisedForBudgetsThatNeverAllowAnything) {
  auto never = a_budget("web", 0);
  never.max_unavailable = "0%";
  budget(never);
  begin();
  pipeline.take_evictions(now);
  EXPECT_THAT(codes(), ElementsAre("BudgetNeverAllows"));
  EXPECT_THAT(diagnose(pipeline, node)[0].message, HasSubstr("maxUnavailable: 0%"));
  never.max_unavailable = "1";
  never.disruptions_allowed = 1;
  budget(never);
  EXPECT_THAT(codes(), IsEmpty()) << "edited by its owner";
}

TEST_F(DiagnosesTest, ABudgetThatIsClosedForNowIsNoDiagnosis) {
  auto counted_late = a_budget("web", 0);
  counted_late.current_healthy = 4;
  counted_late.expected_pods = 5;
  counted_late.desired_healthy = 3;
  budget(counted_late);
  begin();
  pipeline.take_evictions(now);
  EXPECT_THAT(codes(), IsEmpty()) << "an eviction is under way, its controller counts it in a moment";
}

TEST_F(DiagnosesTest, ABudgetIsDiagnosedOnceForAllItsPods) {
  budget(a_budget("web", 0));
  begin();
  pipeline.pod_changed(a_pod("web-1"), now);
  pipeline.take_evictions(now);
  EXPECT_THAT(codes(), ElementsAre("BudgetNeedsAllPods"));
  EXPECT_THAT(diagnose(pipeline, node)[0].scope.pods, ElementsAre(pod.uid, a_pod("web-1").uid));
  budget(a_budget("web", 1));
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(DiagnosesTest, PdbOverlapNamesAllBudgets) {
  budget(a_budget("a", 1));
  budget(a_budget("b", 1));
  begin();
  refuse(
      status_error(500, "", "", "",
                   "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."));
  EXPECT_THAT(codes(), ElementsAre("OverlappingBudgets"));
  EXPECT_THAT(diagnose(pipeline, node)[0].message, HasSubstr("shop/a and shop/b"));
  pipeline.budget_changed(a_budget("b", 1).uid, nullptr, now);
  pipeline.take_evictions(now);
  pipeline.answered(pod.uid, Result<>(), now, wall);
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(DiagnosesTest, PodFinalizerOnceItsContainersHaveEnded) {
  pod.finalizers = {"example.com/backup"};
  pod = terminating(pod);
  begin();
  EXPECT_THAT(codes(), IsEmpty()) << "still within its grace period";
  pod.deletion_grace_seconds = 0;
  pipeline.pod_changed(pod, now);
  ASSERT_THAT(codes(), ElementsAre("PodFinalizer"));
  EXPECT_THAT(diagnose(pipeline, node)[0].message, HasSubstr("example.com/backup"));
}

TEST_F(DiagnosesTest, FinalizersAreNotBlamedWhileContainersRun) {
  pod.finalizers = {"example.com/backup"};
  pod = terminating(pod);
  begin();
  pipeline.time_passed(now + 90s);
  ASSERT_THAT(codes(), ElementsAre("PodStuckTerminating"));
  EXPECT_THAT(diagnose(pipeline, node)[0].message, HasSubstr("a container or its preStop hook does not end"));
  EXPECT_THAT(pipeline.pods().at(pod.uid).report.message, HasSubstr("or the kubelet of the node does not run"));
  node.ready = false;
  EXPECT_THAT(codes(), ElementsAre("KubeletNotReady")) << "nobody knows whether its containers have ended";
  node.ready = true;
  pod.containers_terminated = true;
  pipeline.pod_changed(pod, now);
  EXPECT_THAT(codes(), ElementsAre("PodFinalizer"));
}

TEST_F(DiagnosesTest, AStuckPodWhoseContainersHaveEndedIsHeldByItsFinalizers) {
  pod.finalizers = {"example.com/backup"};
  pod.containers_terminated = true;
  pod = terminating(pod);
  begin();
  pipeline.time_passed(now + 90s);
  EXPECT_THAT(codes(), ElementsAre("PodFinalizer"));
  EXPECT_THAT(pipeline.pods().at(pod.uid).report.message, HasSubstr("kept by its finalizers (example.com/backup)"));
}

// The server deletes a Pending pod without checking budgets. So not the two budgets are the cause of the refusal, but
// the webhook.
TEST_F(DiagnosesTest, TwoBudgetsDoNotHoldAPendingPod) {
  budget(a_budget("a", 0));
  budget(a_budget("b", 0));
  pod.phase = k8s::PodPhase::pending;
  pod.ready = false;
  begin();
  const auto denied = status_error(400, "", "", "", "admission webhook \"a.example.com\" denied the request: not yet");
  refuse(denied);
  now += 1min;
  refuse(denied);
  EXPECT_THAT(codes(), ElementsAre("WebhookDenied"));
}

TEST_F(DiagnosesTest, ARefusedViewOfPodsIsToldOnceItHasLasted) {
  node.pods_error = status_error(403, "Forbidden");
  ASSERT_THAT(codes(), ElementsAre("RightMissing"));
  EXPECT_EQ(diagnose(pipeline, node)[0].hold, 15s) << "one refusal right after a reconnect proves nothing";
}

TEST_F(DiagnosesTest, RbacDeniedFromTheSecondRefusalOn) {
  begin();
  const auto denied =
      status_error(403, "Forbidden", "pods", "",
                   "pods is forbidden: User \"u\" cannot create resource \"pods/eviction\" in API group \"\"");
  refuse(denied);
  EXPECT_THAT(codes(), IsEmpty()) << "one refusal right after a reconnect proves nothing";
  now = pipeline.next_wake(now);
  refuse(denied);
  EXPECT_THAT(codes(), ElementsAre("RightMissing"));
}

TEST_F(DiagnosesTest, ANamespaceThatDoesNotDie) {
  begin();
  refuse(status_error(403, "Forbidden", "pods", "NamespaceTerminating"));
  ASSERT_THAT(codes(), ElementsAre("NamespaceStuckTerminating"));
  const auto fact = diagnose(pipeline, node, {.namespaces = {{"shop", "finalizers remain"}}})[0];
  EXPECT_EQ(fact.subject, "namespace shop");
  EXPECT_THAT(fact.scope.pods, ElementsAre(pod.uid));
  EXPECT_GE(fact.hold, 5min);
  EXPECT_THAT(fact.message, HasSubstr(" (finalizers remain). "));
}

TEST_F(DiagnosesTest, APodThatDoesNotEndAMinuteAfterItsGracePeriod) {
  pod = terminating(pod);
  begin();
  pipeline.time_passed(now + 89s);
  EXPECT_THAT(codes(), IsEmpty());
  pipeline.time_passed(now + 90s);
  ASSERT_THAT(codes(), ElementsAre("PodStuckTerminating"));
  EXPECT_THAT(diagnose(pipeline, node)[0].message, HasSubstr("preStop"));
  pod.containers_terminated = true;
  pipeline.pod_changed(pod, now);
  EXPECT_THAT(diagnose(pipeline, node)[0].message, HasSubstr("unmounted"));
  node.ready = false;
  EXPECT_THAT(codes(), ElementsAre("KubeletNotReady")) << "one cause for all pods";
  pipeline.pod_gone(pod.uid, now, wall);
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(DiagnosesTest, ANodeThatIsNotReadyMattersWhilePodsAreToLeave) {
  node.ready = false;
  EXPECT_THAT(codes(), IsEmpty());
  begin();
  EXPECT_THAT(codes(), ElementsAre("KubeletNotReady"));
}

TEST_F(DiagnosesTest, DoNotDisruptNamesItsAnnotation) {
  pod.annotations["karpenter.sh/do-not-disrupt"] = "true";
  begin();
  ASSERT_THAT(codes(), ElementsAre("DoNotDisrupt"));
  EXPECT_THAT(diagnose(pipeline, node)[0].message,
              AllOf(HasSubstr("karpenter.sh/do-not-disrupt=true"), HasSubstr("agent: --ignore-do-not-disrupt"),
                    HasSubstr("omit --respect-do-not-disrupt")));
  pod.annotations.clear();
  pipeline.pod_changed(pod, now);
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(DiagnosesTest, SelfOnlyOnceTheOthersHaveGone) {
  node.own_uid = pod.uid;
  begin();
  const auto other = a_pod("web-1");
  pipeline.pod_changed(other, now);
  EXPECT_THAT(codes(), IsEmpty());
  pipeline.pod_gone(other.uid, now, wall);
  EXPECT_THAT(codes(), ElementsAre("OnlyOwnPodLeft"));
  pipeline.pod_gone(pod.uid, now, wall);
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(DiagnosesTest, ClockSkewInBothDirections) {
  node.server_ahead = 30s;
  EXPECT_THAT(codes(), IsEmpty());
  node.server_ahead = 31s;
  ASSERT_THAT(codes(), ElementsAre("ClockSkew"));
  EXPECT_THAT(diagnose(pipeline, node)[0].message, HasSubstr("31 s behind"));
  node.server_ahead = -2h;
  EXPECT_THAT(diagnose(pipeline, node)[0].message, HasSubstr("7200 s ahead of"));
}

TEST_F(DiagnosesTest, ALocalVolumeIsSaidBesideWhatHoldsThePod) {
  budget(a_budget("web", 0));
  begin();
  pipeline.take_evictions(now);
  const auto facts = diagnose(pipeline, node, {.local_volumes = {{pod.uid, "bound to n1"}}});
  std::vector<std::string> all;
  for (const auto& fact : facts) all.push_back(fact.code);
  ASSERT_THAT(all, ElementsAre("LocalVolume", "BudgetNeedsAllPods"));
  for (const auto& fact : facts) EXPECT_THAT(fact.scope.pods, ElementsAre(pod.uid)) << fact.code;
  EXPECT_FALSE(facts[0].scope.holds) << "it tells what follows after the eviction";
  EXPECT_TRUE(facts[1].scope.holds);
}

TEST_F(DiagnosesTest, UncordonedMeanwhileAndNodeGone) {
  begin();
  node.unschedulable = false;
  EXPECT_THAT(codes(), ElementsAre("Uncordoned"));
  node.gone = true;
  EXPECT_THAT(codes(), ElementsAre("NodeGone"));
}

TEST(DiagnosisBoard, RaisedOnceAfterItsHoldAndWithdrawnWhenItHeals) {
  DiagnosisBoard board;
  TimePoint now{1h};
  const WallTime wall{1h};
  const std::vector<DiagnosisFact> facts{{"PodFinalizer", "pod a/b", "held", 15s}};
  EXPECT_THAT(board.update(facts, now, wall).raised, IsEmpty());
  EXPECT_EQ(board.next_due(now), now + 15s);
  EXPECT_THAT(board.update(facts, now + 14s, wall).raised, IsEmpty());
  EXPECT_THAT(board.update(facts, now + 15s, wall).raised, ::testing::SizeIs(1));
  EXPECT_THAT(board.update(facts, now + 16s, wall).raised, IsEmpty());
  EXPECT_THAT(board.active(), ::testing::SizeIs(1));
  const std::vector<DiagnosisFact> of_two{{"PodFinalizer", "pod a/b", "held", 15s, {.pods = {"1", "2"}}}};
  EXPECT_THAT(board.update(of_two, now + 16s, wall).raised, IsEmpty());
  EXPECT_THAT(board.active()[0].scope.pods, ElementsAre("1", "2")) << "whom it is about now";
  const auto healed = board.update({}, now + 17s, wall);
  EXPECT_THAT(healed.withdrawn, ::testing::SizeIs(1));
  EXPECT_THAT(board.active(), IsEmpty());
  // The condition begins anew. It must hold for 15 s from now before the diagnosis is raised again.
  EXPECT_THAT(board.update(facts, now + 20s, wall).raised, IsEmpty());
  EXPECT_EQ(board.next_due(now + 20s), now + 35s);
}

}  // namespace
}  // namespace haulout::drain
