#include "drain/budget_book.hpp"

#include <fmt/format.h>

#include "drain/text.hpp"

namespace haulout::drain {
namespace {

constexpr std::string_view namespace_lane = "ns:";

std::string lane_of_namespace(const std::string& ns) {
  return std::string(namespace_lane) + ns;
}

}  // namespace

BudgetBook::Update BudgetBook::update(const std::string& uid, const k8s::PodDisruptionBudget* budget) {
  granted_.erase(uid);
  const auto known = budgets_.find(uid);
  if (!budget) {
    if (known == budgets_.end()) return {{}, false, false};
    std::string ns = known->second.ns;
    for (auto& [selection, budget_of_it] : only_)
      if (budget_of_it == &known->second) budget_of_it = nullptr;
    budgets_.erase(known);
    return {std::move(ns), true, true};
  }
  // `disruptedPods` names the pods whose eviction the budget's status already counts. An entry lasts only milliseconds
  // and may be gone before the response to the eviction arrives. So the pending request is marked as counted now, and
  // count() does not count it a second time.
  for (Lanes* lanes : {&busy_lanes_, &signals_}) {
    const auto lane = lanes->find(uid);
    if (lane != lanes->end() && budget->disrupted_pods.contains(lane->second.pod)) lane->second.counted = true;
  }
  const bool selection_changed = known == budgets_.end() || known->second.selector != budget->selector;
  const bool edited = known == budgets_.end() || known->second.generation != budget->generation;
  const auto [entry, is_new] = budgets_.insert_or_assign(uid, *budget);
  if (is_new)
    for (auto& [selection, budget_of_it] : only_)
      if (selection->front() == uid) budget_of_it = &entry->second;
  return {budget->ns, selection_changed, edited};
}

std::vector<std::string> BudgetBook::selecting(const k8s::Pod& pod) const {
  std::vector<std::string> uids;
  for (const auto& [uid, budget] : budgets_)
    if (budget.selects(pod)) uids.push_back(uid);
  return uids;
}

const k8s::PodDisruptionBudget* BudgetBook::find(const std::vector<std::string>& budgets) const {
  const auto found = budgets.size() == 1 ? budgets_.find(budgets.front()) : budgets_.end();
  return found == budgets_.end() ? nullptr : &found->second;
}

BudgetBook::Selection BudgetBook::selection(const k8s::Pod& pod) {
  scope_.add(pod);
  const auto [entry, is_new] = selections_.insert(selecting(pod));
  if (is_new && entry->size() == 1) only_.emplace(&*entry, find(*entry));
  return &*entry;
}

bool BudgetBook::ignores_budgets(const k8s::Pod& pod) {
  return pod.finished() || pod.phase == k8s::PodPhase::pending || pod.terminating();
}

bool BudgetBook::exempt(const k8s::Pod& pod, const k8s::PodDisruptionBudget& budget) {
  if (ignores_budgets(pod)) return true;
  if (pod.ready) return false;
  return budget.always_allow_unhealthy ||
         (budget.desired_healthy > 0 && budget.current_healthy >= budget.desired_healthy);
}

BudgetBook::Gate BudgetBook::gate(const k8s::Pod& pod, const std::vector<std::string>& budgets) const {
  return gate(pod, budgets, find(budgets));
}

BudgetBook::Gate BudgetBook::gate(const k8s::Pod& pod, Selection budgets) const {
  const auto only = only_.find(budgets);
  return gate(pod, *budgets, only == only_.end() ? nullptr : only->second);
}

// `only` is the budget if there is a single one and it is known.
BudgetBook::Gate BudgetBook::gate(const k8s::Pod& pod, const std::vector<std::string>& budgets,
                                  const k8s::PodDisruptionBudget* only) const {
  for (const std::string& uid : budgets)
    if (busy_lanes_.contains(uid)) return Gate::busy;
  // The pod in the lane of the namespace may have the same budget, which was not known when its eviction was sent.
  if (is_namespace_busy(pod.ns)) return Gate::busy;
  if (!visible_) return Gate::open;
  // If no budget selects the pod, the eviction may be sent. If several do, the server refuses it, whatever the status
  // of the budgets says. Then the eviction may be sent, too, because only the server's answer shows when that ends.
  if (!only || exempt(pod, *only)) return Gate::open;
  if (only->observed_generation < only->generation) return Gate::closed;
  const auto granted = granted_.find(budgets.front());
  const auto unseen = granted == granted_.end() ? 0 : static_cast<std::int32_t>(granted->second.size());
  return only->disruptions_allowed > unseen ? Gate::open : Gate::closed;
}

bool BudgetBook::is_namespace_busy(const std::string& ns) const {
  // This is asked for each pod, and mostly no namespace is a lane.
  const auto first = busy_lanes_.lower_bound(std::string(namespace_lane));
  const bool any = first != busy_lanes_.end() && first->first.starts_with(namespace_lane);
  return any && busy_lanes_.contains(lane_of_namespace(ns));
}

std::vector<std::string> BudgetBook::sent(const k8s::Pod& pod, const std::vector<std::string>& budgets) {
  std::vector<std::string> lanes = budgets;
  if (!has_all_budgets_of(pod)) {
    lanes.push_back(lane_of_namespace(pod.ns));
    busy_lanes_.insert_or_assign(lanes.back(), Lane{pod.name, true});
  }
  for (const std::string& uid : budgets) {
    const auto found = budgets_.find(uid);
    busy_lanes_.insert_or_assign(uid, Lane{pod.name, found == budgets_.end() || exempt(pod, found->second)});
  }
  return lanes;
}

void BudgetBook::answered(const k8s::Pod& pod, const std::vector<std::string>& lanes, bool accepted) {
  for (const std::string& uid : lanes) count(pod, uid, busy_lanes_.extract(uid), accepted);
}

void BudgetBook::signalled(const k8s::Pod& pod, const std::string& budget) {
  signals_.insert_or_assign(budget, Lane{pod.name, false});
}

void BudgetBook::signal_answered(const k8s::Pod& pod, const std::string& budget, bool accepted) {
  count(pod, budget, signals_.extract(budget), accepted);
}

void BudgetBook::count(const k8s::Pod& pod, const std::string& budget, const Lanes::node_type& lane, bool accepted) {
  const bool counted = lane.empty() || lane.mapped().counted;
  if (accepted && !counted && budgets_.contains(budget)) granted_[budget].insert(pod.uid);
}

std::string BudgetBook::explain(const std::vector<std::string>& budgets) const {
  if (budgets.empty()) return {};
  if (budgets.size() > 1) {
    std::string names;
    for (const std::string& uid : budgets) {
      const auto found = budgets_.find(uid);
      if (found != budgets_.end()) names += (names.empty() ? "" : " and ") + found->second.key();
    }
    return fmt::format(
        "several PodDisruptionBudgets select this pod ({}), which the eviction API does not support; narrow the "
        "selectors so that only one does",
        names);
  }
  const auto found = budgets_.find(budgets.front());
  if (found == budgets_.end()) return {};
  const auto& budget = found->second;
  if (budget.observed_generation < budget.generation)
    return fmt::format(
        "blocked by PodDisruptionBudget {}: the disruption controller has not processed it yet; check that "
        "kube-controller-manager runs",
        budget.key());
  if (budget.condition_reason == "SyncFailed")
    return fmt::format("blocked by PodDisruptionBudget {}: the disruption controller cannot compute it: {}",
                       budget.key(), budget.condition_message);
  // The check of `expectedPods` comes before the comparison of healthy pods: if it is 0, the disruption controller
  // allows no disruption, whatever the other counts are.
  if (budget.expected_pods <= 0)
    return fmt::format(
        "blocked by PodDisruptionBudget {}: it matches no pod that it can count, so it allows no disruption",
        budget.key());
  if (budget.disruptions_allowed > 0)
    return fmt::format(
        "blocked by PodDisruptionBudget {}: evictions in progress use all disruptions that it allows ({})",
        budget.key(), budget.disruptions_allowed);
  // The API server lowers `disruptionsAllowed` as soon as it accepts an eviction, and the disruption controller updates
  // `currentHealthy` a moment later. So healthy pods beyond `desiredHealthy` show evictions in progress.
  if (budget.current_healthy > budget.desired_healthy)
    return fmt::format(
        "blocked by PodDisruptionBudget {}: evictions in progress use all disruptions that it allows ({})",
        budget.key(), budget.current_healthy - budget.desired_healthy);
  const int ailing = budget.expected_pods - budget.current_healthy;
  return fmt::format(
      "blocked by PodDisruptionBudget {}: it must keep {} healthy, and has {}, so it allows no disruption now{}",
      budget.key(), budget.desired_healthy, budget.current_healthy,
      ailing > 0 ? fmt::format("; {} of its {} {} missing or not healthy", ailing, pods(budget.expected_pods),
                               ailing == 1 ? "is" : "are")
                 : "");
}

}  // namespace haulout::drain
