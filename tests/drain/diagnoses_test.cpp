#include "drain/diagnoses.hpp"

#include <gmock/gmock.h>

#include "tests/drain/builders.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using testing::a_budget;
using testing::a_pod;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::status_error;
using testing::terminating;

class DiagnosesTest : public ::testing::Test {
 protected:
  SeededRng rng{1};
  TimePoint now{1h};
  WallTime wall{1h};
  NodeFacts node{.name = "n1", .expect_cordon = true};
  Pipeline pipeline{{},
                    rng,
                    [this](const k8s::Pod& seen) { return decide(seen, Policy(), {}, wall); },
                    [](EventType, const PodReport&) {}};
  k8s::Pod pod = a_pod("web-0");

  void budget(const k8s::PodDisruptionBudget& value) { pipeline.budget_changed(value.uid, &value, now); }
  void refuse(const Error& error) {
    pipeline.take_evictions(now);
    pipeline.answered(pod.uid, Result<>(error), now, wall);
  }
  std::vector<std::string> codes() const {
    std::vector<std::string> codes;
    for (const auto& fact : diagnose(pipeline, node)) codes.push_back(fact.code);
    return codes;
  }
  void begin() {
    pipeline.pod_changed(pod, now);
    pipeline.start(now);
  }
};

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
  EXPECT_THAT(codes(), ElementsAre("PDB_ZERO"));
  EXPECT_THAT(diagnose(pipeline, node)[0].message, HasSubstr("maxUnavailable: 0%"));
  never.max_unavailable = "1";
  never.disruptions_allowed = 1;
  budget(never);
  EXPECT_THAT(codes(), IsEmpty()) << "edited by its owner";
}

TEST_F(DiagnosesTest, ABudgetThatIsClosedForNowIsNoDiagnosis) {
  budget(a_budget("web", 0));
  begin();
  pipeline.take_evictions(now);
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(DiagnosesTest, PdbOverlapNamesAllBudgets) {
  budget(a_budget("a", 1));
  budget(a_budget("b", 1));
  begin();
  refuse(
      status_error(500, "", "", "",
                   "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."));
  EXPECT_THAT(codes(), ElementsAre("PDB_OVERLAP"));
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
  ASSERT_THAT(codes(), ElementsAre("POD_FINALIZER"));
  EXPECT_THAT(diagnose(pipeline, node)[0].message, HasSubstr("example.com/backup"));
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
  EXPECT_THAT(codes(), ElementsAre("RBAC_DENIED"));
}

TEST_F(DiagnosesTest, UncordonedMeanwhileAndNodeGone) {
  begin();
  node.unschedulable = false;
  EXPECT_THAT(codes(), ElementsAre("UNCORDONED_MEANWHILE"));
  node.gone = true;
  EXPECT_THAT(codes(), ElementsAre("NODE_GONE"));
}

TEST(DiagnosisBoard, RaisedOnceAfterItsHoldAndWithdrawnWhenItHeals) {
  DiagnosisBoard board;
  TimePoint now{1h};
  const WallTime wall{1h};
  const std::vector<DiagnosisFact> facts{{"POD_FINALIZER", "pod a/b", "held", 15s}};
  EXPECT_THAT(board.update(facts, now, wall).raised, IsEmpty());
  EXPECT_EQ(board.next_due(now), now + 15s);
  EXPECT_THAT(board.update(facts, now + 14s, wall).raised, IsEmpty());
  EXPECT_THAT(board.update(facts, now + 15s, wall).raised, ::testing::SizeIs(1));
  EXPECT_THAT(board.update(facts, now + 16s, wall).raised, IsEmpty());
  EXPECT_THAT(board.active(), ::testing::SizeIs(1));
  const auto healed = board.update({}, now + 17s, wall);
  EXPECT_THAT(healed.withdrawn, ::testing::SizeIs(1));
  EXPECT_THAT(board.active(), IsEmpty());
  // It starts to hold anew: the hold time counts from there.
  EXPECT_THAT(board.update(facts, now + 20s, wall).raised, IsEmpty());
  EXPECT_EQ(board.next_due(now + 20s), now + 35s);
}

}  // namespace
}  // namespace haulout::drain
