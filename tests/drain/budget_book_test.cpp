#include "drain/budget_book.hpp"

#include <gtest/gtest.h>

#include "tests/drain/builders.hpp"

namespace haulout::drain {
namespace {
using testing::a_budget;
using testing::a_pod;
using Gate = BudgetBook::Gate;

class BudgetBookTest : public ::testing::Test {
 protected:
  BudgetBook book;
  k8s::Pod pod = a_pod("web-0");

  Gate gate(const k8s::Pod& of) const { return book.gate(of, book.selecting(of)); }
  void put(const k8s::PodDisruptionBudget& budget) { book.update(budget.uid, &budget); }
};

TEST_F(BudgetBookTest, ASelectionHasTheGateOfItsBudgetAsItIsNow) {
  put(a_budget("web", 1));
  const BudgetBook::Selection selection = book.selection(pod);
  EXPECT_EQ(book.gate(pod, selection), Gate::open);
  put(a_budget("web", 0));
  EXPECT_EQ(book.gate(pod, selection), Gate::closed);
  book.update(a_budget("web", 0).uid, nullptr);
  EXPECT_EQ(book.gate(pod, selection), Gate::open) << "the budget was deleted";
  put(a_budget("web", 0));
  EXPECT_EQ(book.gate(pod, selection), Gate::closed) << "it exists again";
  EXPECT_EQ(book.gate(pod, book.selection(a_pod("db", "other"))), Gate::open) << "no budget selects this pod";
}

TEST_F(BudgetBookTest, NoBudgetIsOpen) {
  EXPECT_EQ(gate(pod), Gate::open);
}

TEST_F(BudgetBookTest, OneRequestPerBudget) {
  put(a_budget("web", 2));
  EXPECT_EQ(gate(pod), Gate::open);
  const auto lanes = book.sent(pod, book.selecting(pod));
  EXPECT_EQ(gate(a_pod("web-1")), Gate::busy);
  EXPECT_EQ(gate(a_pod("db", "other")), Gate::open);
  book.answered(pod, lanes, true);
  EXPECT_EQ(gate(a_pod("web-1")), Gate::open);
}

TEST_F(BudgetBookTest, GrantedEvictionsCountUntilTheBudgetIsSeenToChange) {
  put(a_budget("web", 1));
  const auto lanes = book.sent(pod, book.selecting(pod));
  book.answered(pod, lanes, true);
  EXPECT_EQ(gate(a_pod("web-1")), Gate::closed) << "the one disruption is taken although the budget still says 1";
  EXPECT_EQ(book.explain(book.selecting(pod)),
            "blocked by PodDisruptionBudget shop/web: evictions in progress use all disruptions that it allows (1)");
  put(a_budget("web", 1));
  EXPECT_EQ(gate(a_pod("web-1")), Gate::open);
}

TEST_F(BudgetBookTest, AnEvictionThatTheControllerHasNotCountedYet) {
  auto budget = a_budget("web", 0);
  budget.desired_healthy = 5;
  budget.current_healthy = 6;
  put(budget);
  EXPECT_EQ(book.explain(book.selecting(pod)),
            "blocked by PodDisruptionBudget shop/web: evictions in progress use all disruptions that it allows (1)");
}

// For a budget with maxUnavailable whose pods have no controller, the disruption controller sets expectedPods and
// desiredHealthy to 0.
TEST_F(BudgetBookTest, ABudgetThatCountsNoPod) {
  auto budget = a_budget("web", 0);
  budget.expected_pods = budget.desired_healthy = 0;
  budget.current_healthy = 1;
  put(budget);
  EXPECT_EQ(book.explain(book.selecting(pod)),
            "blocked by PodDisruptionBudget shop/web: it matches no pod that it can count, so it allows no disruption");
}

TEST_F(BudgetBookTest, RefusedEvictionsCountForNothing) {
  put(a_budget("web", 1));
  const auto lanes = book.sent(pod, book.selecting(pod));
  book.answered(pod, lanes, false);
  EXPECT_EQ(gate(pod), Gate::open);
}

TEST_F(BudgetBookTest, ClosedForHealthyPodsOnly) {
  put(a_budget("web", 0));
  EXPECT_EQ(gate(pod), Gate::closed);
  auto pending = pod, finished = pod, unready = pod;
  pending.phase = k8s::PodPhase::pending;
  finished.phase = k8s::PodPhase::failed;
  unready.ready = false;
  EXPECT_EQ(gate(pending), Gate::open);
  EXPECT_EQ(gate(finished), Gate::open);
  EXPECT_EQ(gate(unready), Gate::open) << "IfHealthyBudget: enough of the others are healthy";
  auto broken = a_budget("web", 0);
  broken.current_healthy = broken.desired_healthy - 1;
  put(broken);
  EXPECT_EQ(gate(unready), Gate::closed);
  broken.always_allow_unhealthy = true;
  put(broken);
  EXPECT_EQ(gate(unready), Gate::open);
}

// The server exempts an unhealthy pod only if the budget needs at least one healthy pod and has enough of them.
TEST_F(BudgetBookTest, APodThatIsNotReadyIsHeldByABudgetThatWantsNothing) {
  auto budget = a_budget("web", 0);
  budget.desired_healthy = budget.current_healthy = 0;
  put(budget);
  auto unready = pod;
  unready.ready = false;
  EXPECT_EQ(gate(unready), Gate::closed);
  EXPECT_FALSE(BudgetBook::exempt(unready, budget));
  budget.desired_healthy = 1;
  EXPECT_FALSE(BudgetBook::exempt(unready, budget));
  budget.current_healthy = 1;
  EXPECT_TRUE(BudgetBook::exempt(unready, budget));
}

TEST_F(BudgetBookTest, ASignalMakesNoLaneBusyAndCountsWhenItIsAccepted) {
  auto budget = a_budget("web", 0);
  put(budget);
  book.signalled(pod, budget.uid);
  EXPECT_EQ(gate(a_pod("web-1")), Gate::closed);
  budget.disruptions_allowed = 1;
  put(budget);
  EXPECT_EQ(gate(a_pod("web-1")), Gate::open);
  book.signal_answered(pod, budget.uid, true);
  EXPECT_EQ(gate(a_pod("web-1")), Gate::closed) << "the one disruption is taken";
}

TEST_F(BudgetBookTest, PodsOfWhichTheServerAsksNoBudget) {
  using k8s::PodPhase;
  const std::pair<PodPhase, bool> rows[] = {{PodPhase::pending, true},
                                            {PodPhase::succeeded, true},
                                            {PodPhase::failed, true},
                                            {PodPhase::running, false},
                                            {PodPhase::unknown, false}};
  for (const auto& [phase, ignored] : rows) {
    pod.phase = phase;
    EXPECT_EQ(BudgetBook::ignores_budgets(pod), ignored) << static_cast<int>(phase);
    EXPECT_TRUE(BudgetBook::ignores_budgets(testing::terminating(pod)));
  }
}

TEST_F(BudgetBookTest, UnprocessedBudgetIsClosed) {
  auto fresh = a_budget("web", 3);
  fresh.observed_generation = 0;
  put(fresh);
  EXPECT_EQ(gate(pod), Gate::closed);
}

TEST_F(BudgetBookTest, OverlapIsForTheServerToTell) {
  put(a_budget("a", 0));
  put(a_budget("b", 0));
  EXPECT_EQ(gate(pod), Gate::open);
  EXPECT_NE(book.explain(book.selecting(pod)).find("shop/a and shop/b"), std::string::npos);
}

TEST_F(BudgetBookTest, WithoutTheRightToSeeBudgetsANamespaceIsALane) {
  book.set_visible(false);
  const auto lanes = book.sent(pod, {});
  EXPECT_EQ(gate(a_pod("other")), Gate::busy);
  EXPECT_EQ(gate(a_pod("x", "elsewhere")), Gate::open);
  book.answered(pod, lanes, false);
  EXPECT_EQ(gate(a_pod("other")), Gate::open);
}

TEST_F(BudgetBookTest, WhileTheBudgetsOfALatePodAreNotKnownItsNamespaceIsALane) {
  put(a_budget("other", 1, "elsewhere"));
  book.scope().known_for(0);
  book.selection(pod);
  EXPECT_FALSE(book.complete());
  EXPECT_EQ(gate(pod), Gate::open) << "the server decides";
  const auto lanes = book.sent(pod, {});
  EXPECT_EQ(gate(a_pod("another")), Gate::busy);
  put(a_budget("web", 1));
  book.scope().known_for(1);
  EXPECT_TRUE(book.complete());
  EXPECT_EQ(gate(a_pod("another")), Gate::busy) << "the request in flight may be for the same budget";
  EXPECT_EQ(gate(a_pod("x", "elsewhere")), Gate::open);
  book.answered(pod, lanes, false);
  EXPECT_EQ(gate(a_pod("another")), Gate::open);
}

TEST_F(BudgetBookTest, TheMessageNamesThingCauseAndWayOut) {
  auto budget = a_budget("web", 0);
  put(budget);
  EXPECT_EQ(
      book.explain(book.selecting(pod)),
      "blocked by PodDisruptionBudget shop/web: it must keep 3 healthy, and has 3, so it allows no disruption now")
      << "what would help is the diagnoses' to say: maxUnavailable: 0 is healed by no replica";
  budget.expected_pods = 4;
  put(budget);
  EXPECT_EQ(book.explain(book.selecting(pod)),
            "blocked by PodDisruptionBudget shop/web: it must keep 3 healthy, and has 3, so it allows no disruption "
            "now; 1 of "
            "its 4 pods is missing or not healthy");
}

}  // namespace
}  // namespace haulout::drain
