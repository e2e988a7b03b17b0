#include "drain/budget_scope.hpp"

#include <gtest/gtest.h>

#include "tests/drain/builders.hpp"

namespace haulout::drain {
namespace {
using testing::a_budget;
using testing::a_pod;

k8s::Pod labelled(std::string app, std::string ns = "shop") {
  auto pod = a_pod(app, std::move(ns));
  pod.labels = {{"app", std::move(app)}};
  return pod;
}

k8s::PodDisruptionBudget selecting(std::string app, std::string ns = "shop") {
  auto budget = a_budget(app, 1, std::move(ns));
  budget.selector = k8s::LabelSelector({{"app", k8s::LabelSelector::Operator::in, {std::move(app)}}});
  return budget;
}

TEST(BudgetScope, HasTheBudgetsThatSelectOneOfItsPods) {
  BudgetScope scope;
  EXPECT_FALSE(scope.has(selecting("web")));
  EXPECT_FALSE(scope.has(a_budget("of-all", 1)));
  scope.add(labelled("db"));
  scope.add(labelled("web"));
  EXPECT_TRUE(scope.has(selecting("web")));
  EXPECT_FALSE(scope.has(selecting("cache")));
  EXPECT_FALSE(scope.has(selecting("web", "bank"))) << "a budget selects only pods of its namespace";
  EXPECT_TRUE(scope.has(a_budget("of-all", 1))) << "an empty selector selects every pod of the namespace";
  auto of_none = a_budget("of-none", 1);
  of_none.selector.reset();
  EXPECT_FALSE(scope.has(of_none));
}

TEST(BudgetScope, GrowsOnlyWithPodsThatOtherBudgetsMaySelect) {
  BudgetScope scope;
  scope.add(labelled("web"));
  auto replica = labelled("web");
  replica.name = replica.uid = "another";
  scope.add(replica);
  EXPECT_EQ(scope.size(), 1u);
  scope.add(labelled("db"));
  scope.add(labelled("web", "bank"));
  EXPECT_EQ(scope.size(), 3u);
}

TEST(BudgetScope, KnowsTheBudgetsOfPodsThatWereThereWhenTheyWereListed) {
  BudgetScope scope;
  EXPECT_TRUE(scope.knows(labelled("web"))) << "before known_for(), the budgets of all pods count as known";
  scope.known_for(0);
  EXPECT_TRUE(scope.is_complete()) << "there is no pod yet";
  scope.add(labelled("web"));
  EXPECT_FALSE(scope.is_complete());
  EXPECT_FALSE(scope.knows(labelled("web")));
  scope.known_for(1);
  scope.add(labelled("db"));
  EXPECT_FALSE(scope.is_complete());
  EXPECT_TRUE(scope.knows(labelled("web")));
  EXPECT_FALSE(scope.knows(labelled("db")));
  EXPECT_FALSE(scope.knows(labelled("cache"))) << "it is not in the scope";
  scope.known_for(2);
  EXPECT_TRUE(scope.is_complete());
  EXPECT_TRUE(scope.knows(labelled("db")));
}

}  // namespace
}  // namespace haulout::drain
