#include "drain/budget_diagnosis.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "drain/reasons.hpp"
#include "drain/text.hpp"
#include "k8s/codec.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

namespace {

using k8s::Pod;
using k8s::PodDisruptionBudget;

constexpr std::size_t named = 3;  // maximum number of pods that a message names; it counts the others
// Largest number of replicas that a remedy suggests for a percentage. If more are needed, only a change of the field
// makes sense.
constexpr std::int64_t most_replicas = 20;

bool is_zero(const std::string& value) {
  return value == "0" || value == "0%";
}

std::string field_of(const PodDisruptionBudget& budget) {
  return budget.max_unavailable.empty() ? "minAvailable: " + budget.min_available
                                        : "maxUnavailable: " + budget.max_unavailable;
}

std::string listed(std::vector<std::string> items) {
  const std::size_t more = items.size() > named ? items.size() - named : 0;
  items.resize(items.size() - more);
  return fmt::format("{}{}", fmt::join(items, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

std::string state_of(const Pod& pod) {
  const char* state = pod.phase == k8s::PodPhase::pending ? "Pending" : "not Ready";
  return fmt::format("{} is {}{}", pod.key(), state, pod.trouble.empty() ? "" : " (" + pod.trouble + ")");
}

bool counts_as_unhealthy(const Pod& pod) {
  return !pod.ready && !pod.terminating() && !pod.finished();
}

// All known unhealthy pods of the budget: those that it holds on this node, and those elsewhere if they could be
// listed.
std::vector<std::string> unhealthy(const BudgetCase& about) {
  std::vector<std::string> states;
  std::set<std::string> here;
  for (const Pod* pod : about.held) {
    here.insert(pod->uid);
    if (counts_as_unhealthy(*pod)) states.push_back(state_of(*pod));
  }
  if (about.members)
    for (const Pod& pod : *about.members)
      if (!here.contains(pod.uid) && counts_as_unhealthy(pod)) states.push_back(state_of(pod));
  return states;
}

constexpr const char* see_controller =
    "check that kube-controller-manager runs (kubectl get lease -n kube-system kube-controller-manager)";

// KubeVirt sets this annotation or label on the pod of a virtual machine when it has triggered the migration of that
// machine away from the node.
constexpr const char* evacuation_key = "kubevirt.io/evacuationNodeName";

bool is_evacuated(const Pod& pod) {
  return k8s::value_at(pod.annotations, evacuation_key) || k8s::value_at(pod.labels, evacuation_key);
}

// Returns true if the pod's controller is not a built-in one. Such a controller creates no replacement for a deleted
// pod, or only when it chooses to. Many move the pod themselves, and take the eviction request as the signal to do so.
bool is_moved_by_its_controller(const Pod& pod) {
  if (!pod.controller) return false;
  const std::string& api = pod.controller->api_version;
  return !api.starts_with("apps/") && !api.starts_with("batch/") && pod.controller->kind != "ReplicationController";
}

// Returns an empty string if no held pod has a controller that moves its pods itself.
std::string way_out_of_its_controller(const BudgetCase& about) {
  const auto found = std::find_if(about.held.begin(), about.held.end(),
                                  [](const Pod* pod) { return is_moved_by_its_controller(*pod); });
  if (found == about.held.end()) return {};
  const auto moving =
      std::find_if(about.held.begin(), about.held.end(), [](const Pod* pod) { return is_evacuated(*pod); });
  if (moving != about.held.end())
    return fmt::format(
        "pod {} is being migrated to another node ({}): wait, or find out why it takes so long (kubectl get vmim -n "
        "{})",
        (*moving)->key(), evacuation_key, (*moving)->ns);
  const k8s::OwnerReference& controller = *(*found)->controller;
  return fmt::format(
      "{0} {1} decides when its pods move, perhaps because of the eviction request, which the drain repeats: wait, or "
      "see what it does (kubectl describe {0} {1} -n {2}); do not delete pod {3} by hand",
      controller.kind, controller.name, (*found)->ns, (*found)->name);
}

DiagnosisFact unprocessed(const BudgetCase& about) {
  const PodDisruptionBudget& budget = about.budget;
  std::string way_out = way_out_of_its_controller(about);
  if (way_out.empty())
    way_out = "make it select only pods whose controller has the scale subresource, or use an integer minAvailable";
  if (budget.condition_reason == "SyncFailed")
    return {reason::budget_sync_failed,
            {},
            fmt::format("the disruption controller cannot compute it, so it allows no disruption: {}; {}",
                        budget.condition_message, way_out),
            controller_hold};
  return {reason::budget_not_observed,
          {},
          fmt::format("the disruption controller has not processed it yet, and allows no eviction until then; {}",
                      see_controller),
          unobserved_hold};
}

DiagnosisFact under_way(const PodDisruptionBudget& budget, WallTime server_now) {
  std::vector<std::string> names;
  std::optional<WallTime> last;
  for (const auto& [name, since] : budget.disrupted_pods) {
    names.push_back(since ? fmt::format("pod {}/{}, evicted at {}", budget.ns, name, k8s::format_time(*since))
                          : fmt::format("pod {}/{}", budget.ns, name));
    if (since) last = std::max(last.value_or(*since), *since);
  }
  const auto limit = std::chrono::duration_cast<std::chrono::microseconds>(disrupted_pod_limit);
  const auto margin = std::chrono::duration_cast<std::chrono::microseconds>(disrupted_pod_margin);
  const bool forgotten = std::all_of(budget.disrupted_pods.begin(), budget.disrupted_pods.end(),
                                     [&](const auto& entry) { return entry.second.has_value(); }) &&
                         server_now > *last + limit + margin;
  if (forgotten)
    return {reason::budget_not_observed,
            {},
            fmt::format("its status.disruptedPods still lists pods that were evicted more than two minutes ago ({}), "
                        "although such entries expire; {}",
                        listed(std::move(names)), see_controller),
            {}};
  return {reason::budget_disruption_pending,
          {},
          fmt::format("its status.disruptedPods lists pods that are not terminating ({}); it identifies pods by name, "
                      "so a new pod of the same name counts, too. Wait: the entries expire {}",
                      listed(std::move(names)),
                      last ? fmt::format("at {} at the latest", k8s::format_time(*last + limit)) : "after two minutes"),
          passing_hold};
}

DiagnosisFact deadlock(const BudgetCase& about) {
  const PodDisruptionBudget& budget = about.budget;
  return {reason::budget_unhealthy_deadlock,
          {},
          fmt::format("its unhealthy pods cannot be evicted while it needs {} healthy and has {}: {}; set its "
                      "unhealthyPodEvictionPolicy to AlwaysAllow (kubectl patch pdb {} -n {} --type=merge -p "
                      "'{{\"spec\":{{\"unhealthyPodEvictionPolicy\":\"AlwaysAllow\"}}}}'), or repair the pods",
                      std::max(budget.desired_healthy, 1), budget.current_healthy, listed(unhealthy(about)),
                      budget.name, budget.ns),
          controller_hold};
}

// Returns the smallest number of pods at which the budget allows one disruption, or nullopt if more pods are no remedy.
// The server rounds p percent of n pods up, so n must be at least 100 / (100 - p).
std::optional<std::int64_t> replicas_that_help(const PodDisruptionBudget& budget) {
  const std::string_view field = budget.min_available;
  if (const auto needed = whole_number(field)) return *needed + 1;
  if (!field.ends_with('%')) return std::nullopt;
  const auto percent = whole_number(field.substr(0, field.size() - 1));
  if (!percent || *percent >= 100) return std::nullopt;
  const std::int64_t may_go = 100 - *percent;
  const std::int64_t replicas = (100 + may_go - 1) / may_go;
  return replicas > most_replicas ? std::nullopt : std::optional(replicas);
}

// If `minAvailable` is a number, the server compares it with the pods that exist, not with the replicas that their
// controller should have.
std::string ways_out(const BudgetCase& about) {
  const PodDisruptionBudget& budget = about.budget;
  const bool number = whole_number(budget.min_available).has_value();
  std::string change = budget.max_unavailable.empty() ? "lower minAvailable" : "raise maxUnavailable";
  if (number) change += fmt::format(" to {}", budget.expected_pods - 1);
  const auto replicas = replicas_that_help(budget);
  if (!replicas) return change;
  std::string first;
  if (number && !about.held.empty() && about.held.front()->controller)
    first = fmt::format(
        "if its controller should have more pods, find out why it creates none (kubectl describe {} {} -n {}); "
        "otherwise ",
        about.held.front()->controller->kind, about.held.front()->controller->name, budget.ns);
  return fmt::format("{}scale its controller to {} during the drain, or {}", first, *replicas, change);
}

DiagnosisFact needs_all(const BudgetCase& about) {
  const PodDisruptionBudget& budget = about.budget;
  const bool number = whole_number(budget.min_available).has_value();
  if (const std::string way_out = way_out_of_its_controller(about); !way_out.empty())
    return {budget.expected_pods == 1 ? reason::budget_of_single_pod : reason::budget_needs_all_pods,
            {},
            fmt::format("it needs {} healthy of {} ({}); {}", budget.desired_healthy, pods(budget.expected_pods),
                        field_of(budget), way_out),
            controller_hold};
  if (budget.expected_pods == 1)
    return {reason::budget_of_single_pod,
            {},
            fmt::format("it protects a single pod ({}, needs {} healthy of 1), so this pod cannot be evicted; {}; or "
                        "delete the pod by hand if its owner accepts the outage",
                        field_of(budget), budget.desired_healthy, ways_out(about)),
            controller_hold};
  return {reason::budget_needs_all_pods,
          {},
          fmt::format("it needs {} healthy of {} ({}), {}; {}", budget.desired_healthy, pods(budget.expected_pods),
                      field_of(budget),
                      number ? fmt::format("and only {} exist", budget.expected_pods)
                             : std::string("so it never allows a disruption"),
                      ways_out(about)),
          controller_hold};
}

DiagnosisFact counts_nothing(const PodDisruptionBudget& budget) {
  return {reason::budget_misconfigured,
          {},
          fmt::format("it counts no pod ({}, expectedPods 0), so it never allows a disruption: pods without a "
                      "controller count only for an integer minAvailable; use that, or give the pods a controller",
                      field_of(budget)),
          controller_hold};
}

DiagnosisFact closed_though_healthy(const PodDisruptionBudget& budget) {
  return {reason::budget_misconfigured,
          {},
          fmt::format("all its pods are healthy ({} of {}, {} needed), but it allows no disruption ({}); check that "
                      "kube-controller-manager runs, or change that field",
                      budget.current_healthy, budget.expected_pods, budget.desired_healthy, field_of(budget)),
          controller_hold};
}

DiagnosisFact waiting(const BudgetCase& about) {
  const PodDisruptionBudget& budget = about.budget;
  const std::string count = fmt::format("it needs {} healthy and has {} of {}", budget.desired_healthy,
                                        budget.current_healthy, pods(budget.expected_pods));
  const auto states = unhealthy(about);
  std::string what;
  if (!states.empty())
    what = fmt::format("{}; it opens when they are Ready", listed(states));
  else if (about.members)
    what = "the other pods do not exist yet; use kubectl describe on their controller to see why it creates none";
  else
    what = fmt::format("the other pods are not Ready or do not exist yet (kubectl get pods -n {} -o wide)", budget.ns);
  return {reason::budget_awaits_replacement, {}, count + ": " + what, passing_hold};
}

DiagnosisFact never_opens(const BudgetCase& about) {
  const PodDisruptionBudget& budget = about.budget;
  std::string way_out = way_out_of_its_controller(about);
  if (way_out.empty())
    way_out = fmt::format("change that field{}, or delete the pods by hand if their owner agrees",
                          budget.managed_by.empty() ? "" : fmt::format(" (managed by {})", budget.managed_by));
  return {reason::budget_never_allows,
          {},
          fmt::format("it has {}, which never allows an eviction of its pods; {}", field_of(budget), way_out),
          {}};
}

std::optional<DiagnosisFact> judge(const BudgetCase& about) {
  const PodDisruptionBudget& budget = about.budget;
  if (budget.disrupted_pods.size() > most_disrupted_pods)
    return DiagnosisFact{reason::budget_map_too_big,
                         {},
                         fmt::format("more than {} evictions of its pods wait for the disruption controller, and the "
                                     "server accepts no more; check that kube-controller-manager runs and keeps up",
                                     most_disrupted_pods),
                         controller_hold};
  if (budget.observed_generation < budget.generation) return unprocessed(about);
  if (budget.disruptions_allowed > 0) return std::nullopt;
  if (is_zero(budget.max_unavailable) || budget.min_available == "100%") return never_opens(about);
  if (budget.condition_reason == "SyncFailed") return unprocessed(about);
  if (!budget.disrupted_pods.empty()) return under_way(budget, about.server_now);
  const auto sick = std::count_if(about.held.begin(), about.held.end(), [](const Pod* pod) { return !pod->ready; });
  const bool unhealthy_may_not = !budget.always_allow_unhealthy &&
                                 (budget.current_healthy < budget.desired_healthy || budget.desired_healthy == 0);
  const bool stuck = unhealthy_may_not && sick > 0;
  if (stuck && static_cast<std::size_t>(sick) == about.held.size()) return deadlock(about);
  if (budget.expected_pods <= 0) return counts_nothing(budget);
  if (budget.desired_healthy >= budget.expected_pods) return needs_all(about);
  if (stuck) return deadlock(about);
  if (budget.current_healthy >= budget.expected_pods) return closed_though_healthy(budget);
  // The API server has counted evictions that the disruption controller has not counted yet. They are under way.
  if (budget.current_healthy > budget.desired_healthy) return std::nullopt;
  return waiting(about);
}

}  // namespace

std::optional<DiagnosisFact> diagnose_budget(const BudgetCase& about) {
  auto fact = judge(about);
  if (fact) fact->subject = "PodDisruptionBudget " + about.budget.key();
  return fact;
}

}  // namespace haulout::drain
