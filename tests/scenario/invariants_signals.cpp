// The invariants about signals: requests for pods whose budgets are exhausted. A webhook may act on such a request, so
// the drain must send one for each pod and repeat it rarely.
#include <fmt/format.h>

#include <algorithm>

#include "drain/budget_book.hpp"
#include "k8s/codec.hpp"
#include "tests/scenario/invariants.hpp"

namespace haulout::scenario {
namespace {

using namespace std::chrono_literals;

// Limits on repeated signals: this many at once, and then one more per interval.
constexpr std::size_t at_once = 3;
constexpr Duration apart = 30s;

bool is_closed(const k8s::PodDisruptionBudget& budget) {
  return budget.disruptions_allowed <= 0 || budget.observed_generation < budget.generation;
}

}  // namespace

void Invariants::see_budget(const sim::Change& change) {
  const auto budget = k8s::decode<k8s::PodDisruptionBudget>(change.object->dump());
  if (!budget) return;
  // The budget was exhausted until now.
  if (closed_.contains(budget->uid) && closed_[budget->uid] == TimePoint::max()) closed_[budget->uid] = clock_.now();
  if (is_closed(*budget) && change.type != sim::ChangeType::deleted) closed_[budget->uid] = TimePoint::max();
}

const k8s::PodDisruptionBudget* Invariants::only_budget(const std::vector<k8s::PodDisruptionBudget>& all,
                                                        const Instance& pod) const {
  const k8s::PodDisruptionBudget* only = nullptr;
  for (const k8s::PodDisruptionBudget& budget : all) {
    if (!budget.selects(pod.pod)) continue;
    if (only) return nullptr;
    only = &budget;
  }
  return only;
}

void Invariants::check_signal(const Instance& pod) {
  const auto all = budgets();
  const k8s::PodDisruptionBudget* budget = only_budget(all, pod);
  const auto closed = budget ? closed_.find(budget->uid) : closed_.end();
  // A budget that was exhausted until a moment ago excuses the signal.
  if (!budget || (closed != closed_.end() && clock_.now() < saturating_add(closed->second, news_takes))) return;
  violated("P10: only a signal, although its budget is open: " + pod.key);
}

// A 5xx answer does not count, because a webhook that cannot be called has not seen the request.
void Invariants::after_signal(Instance& pod, const http::Response* answer) {
  if (!answer || answer->status < 400 || answer->status >= 500) return;
  const auto all = budgets();
  const k8s::PodDisruptionBudget* budget = only_budget(all, pod);
  if (!std::exchange(pod.signal_refused, true) || !budget) return;
  const auto most = at_once + static_cast<std::size_t>((clock_.now() - began_) / apart);
  if (++repeated_[budget->uid] == most + 1)
    violated(fmt::format("P10: {} signals repeated to closed budget {} in {} s", most + 1, budget->key(),
                         std::chrono::duration_cast<std::chrono::seconds>(since_start()).count()));
}

// The drain must send a request for each pod that only an exhausted budget holds up. The limit allows for all other
// pods to take their places first, and for signals to the other pods of the budget.
void Invariants::check_asked() {
  const bool sees_budgets = !given_.as_kubelet && !given_.options.delete_instead_of_evict;
  if (!given_.sound_wire || !given_.sound_kubelets || given_.human_uncordon || !cordon_claimed_ || node_gone_ ||
      !sees_budgets)
    return;
  Duration all = 0s;
  for (const auto& [uid, pod] : pods_) {
    if (!on_our_node(pod) || !pod.terminating) continue;
    all += std::min(pod.gone.value_or(clock_.now()), pod.place_until) - *pod.terminating + 600ms;
  }
  const std::size_t places = given_.options.max_concurrent;
  const Duration bound =
      30s + given_.migrations_take + (places == 0 ? Duration::zero() : all / static_cast<Duration::rep>(places));
  for (const auto& [uid, pod] : pods_) {
    const std::string ns = pod.key.substr(0, pod.key.find('/'));
    const bool concerned = on_our_node(pod) && pod.bound <= began_ && hindered_.contains(uid) &&
                           !held_otherwise_.contains(uid) && !touched_namespaces_.contains(ns);
    if (!concerned || is_own(pod) || verdict(pod) != drain::Verdict::evict || may_look_managed(pod)) continue;
    const TimePoint until = pod.first_sent.value_or(pod.terminating.value_or(pod.gone.value_or(clock_.now())));
    if (until - *cordon_claimed_ > bound)
      violated(fmt::format("P10: {} was asked for only after {} s, or never", pod.key,
                           std::chrono::duration_cast<std::chrono::seconds>(until - *cordon_claimed_).count()));
  }
}

}  // namespace haulout::scenario
