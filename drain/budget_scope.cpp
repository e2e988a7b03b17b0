#include "drain/budget_scope.hpp"

#include <algorithm>

namespace haulout::drain {

bool BudgetScope::has(const k8s::PodDisruptionBudget& budget) const {
  const auto pods = of_.find(budget.ns);
  return pods != of_.end() && budget.selector &&
         std::ranges::any_of(pods->second, [&](const auto& pod) { return budget.selector->matches(pod.first); });
}

bool BudgetScope::knows(const k8s::Pod& pod) const {
  if (is_complete()) return true;
  const auto pods = of_.find(pod.ns);
  if (pods == of_.end()) return false;
  const auto found = pods->second.find(pod.labels);
  return found != pods->second.end() && found->second < known_;
}

}  // namespace haulout::drain
