#include "agent/report/reporter.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class DrainTallyTest : public ::testing::Test {
 protected:
  void pod_event(drain::EventType type, const std::string& uid, const std::string& reason = "") {
    drain::PodReport pod;
    pod.uid = uid;
    pod.reason = reason;
    tally.see({.type = type, .at = {}, .node = node, .pod = &pod, .message = {}, .progress = {.to_evict = 3}});
  }
  void diagnosis_event(drain::EventType type, const std::string& code, const std::string& subject) {
    const drain::Diagnosis diagnosis{code, subject, "never", {}};
    tally.see({.type = type, .at = {}, .node = node, .diagnosis = &diagnosis, .message = {}, .progress = {}});
  }

  std::string node = "n1";
  DrainTally tally;
};

TEST_F(DrainTallyTest, APodWaitsForOneReasonUntilItLeaves) {
  using enum drain::EventType;
  pod_event(parked, "a", "BlockedByBudget");
  pod_event(parked, "b", "BlockedByBudget");
  pod_event(parked, "c", "DoNotDisrupt");
  EXPECT_THAT(tally.waiting_by_reason(), ElementsAre(Pair("BlockedByBudget", 2), Pair("DoNotDisrupt", 1)));
  EXPECT_EQ(tally.progress().to_evict, 3u);
  pod_event(parked, "a", "Forbidden");
  pod_event(resumed, "b");
  pod_event(evicted, "b");
  pod_event(vanished, "c");
  EXPECT_THAT(tally.waiting_by_reason(), ElementsAre(Pair("Forbidden", 1)));
}

TEST_F(DrainTallyTest, DiagnosesAreCountedByCodeUntilTheyAreWithdrawn) {
  using enum drain::EventType;
  diagnosis_event(diagnosis_raised, "BudgetNeverAllows", "PodDisruptionBudget shop/web");
  diagnosis_event(diagnosis_raised, "BudgetNeverAllows", "PodDisruptionBudget shop/api");
  diagnosis_event(diagnosis_raised, "BudgetNeverAllows", "PodDisruptionBudget shop/api");
  EXPECT_THAT(tally.diagnoses_by_code(), ElementsAre(Pair("BudgetNeverAllows", 2)));
  diagnosis_event(diagnosis_withdrawn, "BudgetNeverAllows", "PodDisruptionBudget shop/web");
  EXPECT_THAT(tally.diagnoses_by_code(), ElementsAre(Pair("BudgetNeverAllows", 1)));
}

TEST_F(DrainTallyTest, ANewDrainBeginsWithNothing) {
  using enum drain::EventType;
  pod_event(parked, "a", "BlockedByBudget");
  diagnosis_event(diagnosis_raised, "BudgetNeverAllows", "x");
  tally.see({.type = planned, .at = {}, .node = node, .message = {}, .progress = {.to_evict = 7}});
  EXPECT_THAT(tally.waiting_by_reason(), IsEmpty());
  EXPECT_THAT(tally.diagnoses_by_code(), IsEmpty());
  EXPECT_EQ(tally.progress().to_evict, 7u);
  tally.clear();
  EXPECT_EQ(tally.progress().to_evict, 0u);
}

}  // namespace
}  // namespace haulout::agent
