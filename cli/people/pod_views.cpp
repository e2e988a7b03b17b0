#include "cli/people/pod_views.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "drain/budget_book.hpp"
#include "drain/diagnoses.hpp"
#include "drain/order.hpp"
#include "drain/reasons.hpp"
#include "k8s/codec.hpp"

namespace haulout::cli {
namespace {

constexpr auto overdue_after = std::chrono::duration_cast<WallTime::duration>(drain::Pipeline::place_margin);

// Returns the messages of the filters about a pod that is evicted in spite of them.
std::string remarks(const std::vector<drain::Finding>& findings) {
  std::vector<std::string> parts;
  parts.reserve(findings.size());
  for (const drain::Finding& finding : findings) parts.push_back(finding.message);
  return joined(parts, "; ");
}

bool overlapping(const k8s::Pod& pod, const std::vector<std::string>& budgets) {
  return budgets.size() > 1 && !drain::BudgetBook::ignores_budgets(pod);
}

void judge_eviction(PodView& view, const k8s::Pod& pod, const drain::BudgetBook& book, WallTime now) {
  const auto budgets = book.selecting(pod);
  if (overlapping(pod, budgets)) {
    view.fate = PodFate::blocked;
    view.reason = reason::overlapping_budgets;
    const auto fact = drain::overlap_fact(pod, book.explain(budgets));
    view.message = fmt::format("{} [{}]", fact.message, fact.code);
  } else if (book.gate(pod, budgets) == drain::BudgetBook::Gate::closed) {
    view.fate = PodFate::blocked;
    view.reason = reason::blocked_by_budget;
    view.message = book.explain(budgets);
    const auto fact = drain::diagnose_budget({book.budgets().at(budgets.front()), {&pod}, now});
    // A drain reports this diagnosis only after its condition has lasted for some time. Here it is shown immediately.
    if (fact) view.message = fmt::format("blocked by {}: {} [{}]", fact->subject, fact->message, fact->code);
  } else {
    view.fate = PodFate::evict;
    if (!view.findings.empty()) view.reason = view.findings.front().reason;
    view.message = remarks(view.findings);
  }
}

std::vector<PodBudget> budgets_of(const k8s::Pod& pod, const drain::BudgetBook& book) {
  std::vector<PodBudget> result;
  for (const std::string& uid : book.selecting(pod)) {
    const k8s::PodDisruptionBudget& budget = book.budgets().at(uid);
    result.push_back({budget.key(), budget.disruptions_allowed, budget.current_healthy, budget.desired_healthy});
  }
  std::sort(result.begin(), result.end(), [](const PodBudget& a, const PodBudget& b) { return a.key < b.key; });
  return result;
}

// Considers only the budgets, and not Haulout's own policy.
Evictable evictable(const k8s::Pod& pod, PodFate fate, const drain::BudgetBook& book) {
  if (fate == PodFate::stay || fate == PodFate::leaving) return Evictable::not_asked;
  const auto budgets = book.selecting(pod);
  if (overlapping(pod, budgets) || book.gate(pod, budgets) == drain::BudgetBook::Gate::closed) return Evictable::no;
  return book.visible() ? Evictable::yes : Evictable::unknown;
}

PodView view_of(const k8s::Pod& pod, const drain::Decision& decision, const drain::BudgetBook& book, WallTime now,
                bool node_ready) {
  PodView view;
  view.key = pod.key();
  view.uid = pod.uid;
  view.budgets = budgets_of(pod, book);
  if (pod.controller) view.controller = pod.controller->kind + "/" + pod.controller->name;
  view.reason = decision.reason;
  view.message = decision.message;
  view.findings = decision.findings;
  switch (decision.verdict) {
    case drain::Verdict::skip: view.fate = PodFate::stay; break;
    case drain::Verdict::refuse: view.fate = PodFate::refused; break;
    case drain::Verdict::park:
      view.fate = PodFate::parked;
      if (decision.reason == reason::do_not_disrupt) {
        const auto fact = drain::protected_fact(pod, decision.message);
        view.message = fmt::format("{} [{}]", fact.message, fact.code);
      }
      break;
    case drain::Verdict::evict:
      if (!pod.terminating()) {
        judge_eviction(view, pod, book, now);
        break;
      }
      view.fate = PodFate::leaving;
      view.reason = reason::terminating;
      view.message = fmt::format("its grace period ends {}", k8s::format_time(*pod.deletion_timestamp));
      if (!pod.finalizers.empty()) view.message += ", then its finalizers decide: " + joined(pod.finalizers, ", ");
      if (const auto fact = drain::diagnose_leaving(pod, now >= *pod.deletion_timestamp + overdue_after, node_ready))
        view.message = fmt::format("{} [{}]", fact->message, fact->code);
      break;
  }
  view.evictable = evictable(pod, view.fate, book);
  return view;
}

drain::BudgetBook book_of(const std::optional<std::vector<k8s::PodDisruptionBudget>>& budgets) {
  drain::BudgetBook book;
  book.set_visible(budgets.has_value());
  for (const k8s::PodDisruptionBudget& budget : budgets.value_or(std::vector<k8s::PodDisruptionBudget>()))
    book.update(budget.uid, &budget);
  return book;
}

}  // namespace

std::string_view to_string(PodFate fate) {
  switch (fate) {
    case PodFate::blocked: return "blocked";
    case PodFate::parked: return "parked";
    case PodFate::refused: return "refused";
    case PodFate::leaving: return "leaving";
    case PodFate::evict: return "evict";
    case PodFate::stay: return "stay";
  }
  return "";
}

std::string_view to_string(Evictable evictable) {
  switch (evictable) {
    case Evictable::yes: return "yes";
    case Evictable::no: return "no";
    case Evictable::unknown: return "unknown";
    case Evictable::not_asked: return "";
  }
  return "";
}

bool holds_up(PodFate fate) {
  return fate == PodFate::blocked || fate == PodFate::parked || fate == PodFate::refused;
}

std::vector<PodView> pod_views(const std::vector<k8s::Pod>& pods,
                               const std::optional<std::vector<k8s::PodDisruptionBudget>>& budgets,
                               const drain::Policy& policy, const drain::DaemonSetStates& daemon_sets, WallTime now,
                               bool node_ready) {
  const drain::BudgetBook book = book_of(budgets);
  std::vector<std::pair<drain::OrderKey, PodView>> ordered;
  ordered.reserve(pods.size());
  for (const k8s::Pod& pod : pods)
    ordered.emplace_back(drain::order_key(pod, "", std::nullopt),
                         view_of(pod, drain::decide(pod, policy, daemon_sets, now), book, now, node_ready));
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    const bool a_stays = a.second.fate == PodFate::stay, b_stays = b.second.fate == PodFate::stay;
    if (a_stays != b_stays) return b_stays;
    return a_stays ? a.second.key < b.second.key : a.first < b.first;
  });
  std::vector<PodView> views;
  views.reserve(ordered.size());
  for (auto& [order, view] : ordered) views.push_back(std::move(view));
  return views;
}

std::vector<BudgetView> budget_views(const std::vector<k8s::Pod>& pods,
                                     const std::vector<k8s::PodDisruptionBudget>& budgets, const drain::Policy& policy,
                                     const drain::DaemonSetStates& daemon_sets, WallTime now) {
  std::vector<BudgetView> views;
  for (const k8s::PodDisruptionBudget& budget : budgets) {
    BudgetView view{budget.key(), budget.disruptions_allowed, budget.current_healthy, budget.desired_healthy};
    view.pods = static_cast<std::size_t>(std::count_if(pods.begin(), pods.end(), [&](const k8s::Pod& pod) {
      return budget.selects(pod) && !pod.terminating() &&
             drain::decide(pod, policy, daemon_sets, now).verdict == drain::Verdict::evict;
    }));
    if (view.pods != 0) views.push_back(std::move(view));
  }
  std::sort(views.begin(), views.end(), [](const BudgetView& a, const BudgetView& b) { return a.key < b.key; });
  return views;
}

}  // namespace haulout::cli
