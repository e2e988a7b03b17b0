#include "drain/diagnoses.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "drain/reasons.hpp"
#include "drain/text.hpp"
#include "k8s/codec.hpp"
#include "k8s/objects.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {

namespace {

// Waiting pods, grouped by what they wait for: one diagnosis covers a whole group.
struct Held {
  std::map<std::string, std::vector<const k8s::Pod*>> by_budget;     // UID of the budget
  std::map<std::string, std::vector<const k8s::Pod*>> by_namespace;  // name of the terminating namespace
  std::map<std::pair<std::string, bool>, std::vector<const TrackedPod*>> by_webhook;  // name, and WebhookRefusal::down
  std::map<std::string, std::vector<const TrackedPod*>> by_policy;                    // name of the policy
};

Scope about(const k8s::Pod& pod) {
  return {.pods = {pod.uid}};
}

bool diagnose_overlap(const TrackedPod& tracked, const BudgetBook& book, std::vector<DiagnosisFact>& facts) {
  if (BudgetBook::ignores_budgets(tracked.pod)) return false;
  const bool seen = tracked.budgets->size() > 1;
  if (!seen && (book.visible() || tracked.refusal.verdict != EvictionVerdict::overlap)) return false;
  facts.push_back(overlap_fact(tracked.pod, seen ? book.explain(*tracked.budgets) : tracked.refusal.message));
  return true;
}

void diagnose_hold(const TrackedPod& tracked, std::vector<DiagnosisFact>& facts) {
  const std::string subject = "pod " + tracked.pod.key();
  if (tracked.hold == TrackedPod::Hold::pinned) {
    facts.push_back({reason::pod_pinned, subject, tracked.report.message, {}, about(tracked.pod)});
  } else if (tracked.decision.reason == reason::do_not_disrupt) {
    facts.push_back(protected_fact(tracked.pod, tracked.report.message));
  } else if (const std::string& why = tracked.decision.reason;
             why == reason::waiting_for_completion || why == reason::waiting_for_gang || why == reason::gang_member) {
    facts.push_back({why, subject, tracked.report.message, controller_hold, about(tracked.pod)});
  }
}

DiagnosisFact denied_fact(const TrackedPod& tracked) {
  return {reason::admission_denied, "pod " + tracked.pod.key(),
          fmt::format(
              "admission control denies its eviction ({}); ask the owner of the policy or of the API server's plugin",
              tracked.refusal.message),
          controller_hold, about(tracked.pod)};
}

void diagnose_refused(const TrackedPod& tracked, const BudgetBook& book, Held& held,
                      std::vector<DiagnosisFact>& facts) {
  // An authorizer, a webhook or a policy may refuse wrongly once, right after a reconnect. So their refusals lead to a
  // diagnosis from the second one on.
  const bool again = tracked.refusal.times >= 2;
  const EvictionVerdict verdict = tracked.refusal.verdict;
  if (verdict == EvictionVerdict::forbidden && again) {
    facts.push_back({reason::right_missing,
                     "pod " + tracked.pod.key(),
                     fmt::format("{}; grant verb create on resource pods/eviction (API group \"\"), or with "
                                 "--disable-eviction verb delete on resource pods",
                                 tracked.refusal.message),
                     {},
                     about(tracked.pod)});
  } else if (diagnose_overlap(tracked, book, facts)) {
    return;
  } else if (tracked.refusal.webhook && again &&
             (verdict == EvictionVerdict::admission || verdict == EvictionVerdict::retry)) {
    held.by_webhook[{tracked.refusal.webhook->name, tracked.refusal.webhook->down}].push_back(&tracked);
  } else if (verdict == EvictionVerdict::admission && again) {
    const std::string policy = admission_policy(tracked.refusal.message);
    if (policy.empty())
      facts.push_back(denied_fact(tracked));
    else
      held.by_policy[policy].push_back(&tracked);
  } else if (verdict == EvictionVerdict::ns_terminating) {
    held.by_namespace[tracked.pod.ns].push_back(&tracked.pod);
  } else if (verdict == EvictionVerdict::budget && tracked.budgets->size() == 1) {
    held.by_budget[tracked.budgets->front()].push_back(&tracked.pod);
  }
}

void diagnose_pod(const TrackedPod& tracked, const BudgetBook& book, const NodeFacts& node, const Known& known,
                  Held& held, std::vector<DiagnosisFact>& facts) {
  if (tracked.state == PodState::terminating) {
    if (auto fact = diagnose_leaving(tracked.pod, tracked.stuck, node.ready)) facts.push_back(*std::move(fact));
    return;
  }
  if (!is_held(tracked)) return;
  if (const auto local = known.local_volumes.find(tracked.pod.uid); local != known.local_volumes.end())
    facts.push_back(local_volume_fact(tracked.pod, local->second));
  if (tracked.hold != TrackedPod::Hold::none) return diagnose_hold(tracked, facts);
  diagnose_refused(tracked, book, held, facts);
}

Scope about(const std::vector<const k8s::Pod*>& pods) {
  Scope scope;
  scope.pods.reserve(pods.size());
  for (const k8s::Pod* pod : pods) scope.pods.push_back(pod->uid);
  return scope;
}

void diagnose_webhooks(const Pipeline& pipeline, const Held& held, const Known& known,
                       std::vector<DiagnosisFact>& facts) {
  for (const auto& [webhook, pods] : held.by_webhook) {
    const auto service = known.services.find(pods.front()->refusal.webhook->service);
    facts.push_back(
        diagnose_webhook({pods, pipeline.pods(), service == known.services.end() ? nullptr : &service->second}));
  }
}

void diagnose_policies(const Held& held, std::vector<DiagnosisFact>& facts) {
  for (const auto& [policy, pods] : held.by_policy) {
    const TrackedPod& first = *pods.front();
    facts.push_back({reason::admission_denied, "ValidatingAdmissionPolicy " + policy,
                     fmt::format("it denies the eviction of {} ({}); ask the owner of the policy (kubectl get "
                                 "validatingadmissionpolicy {})",
                                 one_of(first.pod.key(), pods.size()), first.refusal.message, policy),
                     controller_hold, about(pods)});
  }
}

void diagnose_namespaces(const Held& held, const Known& known, std::vector<DiagnosisFact>& facts) {
  for (const auto& [ns, pods] : held.by_namespace) {
    const auto cause = known.namespaces.find(ns);
    facts.push_back(namespace_fact(ns, pods, cause == known.namespaces.end() ? std::string() : cause->second));
  }
}

void diagnose_budgets(const Held& held, const BudgetBook& book, const NodeFacts& node, const Known& known,
                      std::vector<DiagnosisFact>& facts) {
  for (const auto& [uid, pods] : held.by_budget) {
    const auto budget = book.budgets().find(uid);
    if (budget == book.budgets().end()) continue;
    const auto members = known.members.find(uid);
    auto fact = diagnose_budget(
        {budget->second, pods, node.server_now, members == known.members.end() ? nullptr : &members->second});
    if (!fact) continue;
    fact->scope = about(pods);
    facts.push_back(*std::move(fact));
  }
}

bool only_own_pod_left(const Pipeline& pipeline, const std::string& own_uid) {
  const auto own = pipeline.pods().find(own_uid);
  if (own_uid.empty() || own == pipeline.pods().end() || !must_leave(own->second.state)) return false;
  return std::none_of(pipeline.pods().begin(), pipeline.pods().end(),
                      [&](const auto& entry) { return entry.first != own_uid && must_leave(entry.second.state); });
}

void diagnose_clock(const NodeFacts& node, std::vector<DiagnosisFact>& facts) {
  const bool behind = node.server_ahead > Duration::zero();
  const Duration skew = behind ? node.server_ahead : -node.server_ahead;
  if (skew <= clock_skew_limit) return;
  facts.push_back(
      {reason::clock_skew,
       "clock",
       fmt::format(
           "the clock of this machine is {} s {} the API server's. Times in messages may be wrong, and tokens and "
           "certificates may be rejected. Check both clocks (timedatectl, chronyc tracking)",
           std::chrono::duration_cast<std::chrono::seconds>(skew).count(), behind ? "behind" : "ahead of"),
       controller_hold,
       {.holds = false}});
}

constexpr std::string_view configurations = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations";

std::string state_of(const k8s::Pod& pod) {
  if (pod.ready) return "Ready";
  return pod.trouble.empty() ? "not Ready" : fmt::format("not Ready ({})", pod.trouble);
}

// Returns a clause about a pod of the webhook's Service that is or was on this node, because the drain itself may have
// evicted that pod.
std::string servers_here(const WebhookCase& about, const k8s::Service& service) {
  const TrackedPod* here = nullptr;
  const TrackedPod* left = nullptr;
  for (const auto& [uid, tracked] : about.pods) {
    if (!service.selects(tracked.pod)) continue;
    const bool leaves = tracked.state == PodState::vanished || tracked.state == PodState::terminating;
    (leaves ? left : here) = &tracked;
  }
  if (here)
    return fmt::format("; one of them, pod {}, is on this node and is {}", here->pod.key(), state_of(here->pod));
  if (!left) return {};
  return fmt::format(
      "; one of them, pod {}, {} on this node, and a replacement must become Ready on another one. For the next drain "
      "annotate the pods of the Service with {}: \"1\", so that they are evicted last",
      left->pod.key(), left->state == PodState::vanished ? "was deleted" : "is terminating", drain_order_annotation);
}

std::string way_to_its_servers(const WebhookCase& about) {
  if (!about.service) return "check that its server runs, usually pods behind a Service";
  if (!*about.service)
    return fmt::format(
        "its Service {} does not exist: if its application was removed, have the webhook's configuration deleted",
        about.held.front()->refusal.webhook->service);
  const k8s::Service& service = **about.service;
  if (!service.selector) return fmt::format("check that the endpoints of its Service {} run", service.key());
  return fmt::format("check that the pods behind its Service {} run (kubectl get pods -n {} -l '{}' -o wide){}",
                     service.key(), service.ns, k8s::to_string(*service.selector), servers_here(about, service));
}

using k8s::Pod;
using k8s::PodDisruptionBudget;

constexpr std::size_t named = 3;  // maximum number of pods that a message names; it counts the others
// The largest number of replicas that a remedy suggests for a budget whose minAvailable is a percentage. If more are
// needed, the only remedy is to lower minAvailable.
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

std::string named_with_state(const Pod& pod) {
  const char* state = pod.phase == k8s::PodPhase::pending ? "Pending" : "not Ready";
  return fmt::format("{} is {}{}", pod.key(), state, pod.trouble.empty() ? "" : " (" + pod.trouble + ")");
}

bool counts_as_unhealthy(const Pod& pod) {
  return !pod.ready && !pod.terminating() && !pod.finished();
}

// Returns a text about each known unhealthy pod of the budget: about the pods on this node that wait for the budget,
// and, if the pods of the budget could be listed, also about all others.
std::vector<std::string> unhealthy(const BudgetCase& about) {
  std::vector<std::string> states;
  std::set<std::string> here;
  for (const Pod* pod : about.held) {
    here.insert(pod->uid);
    if (counts_as_unhealthy(*pod)) states.push_back(named_with_state(*pod));
  }
  if (about.members)
    for (const Pod& pod : *about.members)
      if (!here.contains(pod.uid) && counts_as_unhealthy(pod)) states.push_back(named_with_state(pod));
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

// Returns true if the pod's controller is not a built-in one. Such a controller may create no replacement for a deleted
// pod, or only later. Many move the pod themselves, and take the eviction request as the signal to do so.
bool is_moved_by_its_controller(const Pod& pod) {
  if (!pod.controller) return false;
  const std::string& api = pod.controller->api_version;
  return !api.starts_with("apps/") && !api.starts_with("batch/") && pod.controller->kind != "ReplicationController";
}

// Returns the remedy for pods whose controller moves its pods itself; an empty string if no waiting pod has such a
// controller.
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
      "{0} {1} may move its pods itself after an eviction request, and a drain repeats that request. Wait, or see "
      "what it does (kubectl describe {0} {1} -n {2}); do not delete pod {3} yourself, because perhaps nothing "
      "replaces it",
      controller.kind, controller.name, (*found)->ns, (*found)->name);
}

DiagnosisFact unprocessed(const BudgetCase& about) {
  const PodDisruptionBudget& budget = about.budget;
  std::string way_out = way_out_of_its_controller(about);
  if (way_out.empty()) way_out = "if the controller of its pods has no scale subresource, use an integer minAvailable";
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

// Returns the smallest number of pods at which the budget allows one disruption. Nullopt if more pods are no remedy, or
// if a percentage needs more than `most_replicas`. The server rounds p percent of n pods up, so n must be at least
// 100 / (100 - p).
std::optional<std::int64_t> replicas_that_help(const PodDisruptionBudget& budget) {
  const std::string_view field = budget.min_available;
  if (const auto needed = parse_number<std::int64_t>(field)) return *needed + 1;
  if (!field.ends_with('%')) return std::nullopt;
  const auto percent = parse_number<std::int64_t>(field.substr(0, field.size() - 1));
  if (!percent || *percent >= 100) return std::nullopt;
  const std::int64_t may_go = 100 - *percent;
  const std::int64_t replicas = (100 + may_go - 1) / may_go;
  return replicas > most_replicas ? std::nullopt : std::optional(replicas);
}

bool has_no_controller(const BudgetCase& about) {
  return !about.held.empty() && !about.held.front()->controller;
}

// Returns the remedies for a budget that needs all its pods. If `minAvailable` is a number, the server compares it with
// the pods that exist, not with the replicas that their controller should have.
std::string ways_out(const BudgetCase& about) {
  const PodDisruptionBudget& budget = about.budget;
  const bool number = parse_number<std::int64_t>(budget.min_available).has_value();
  std::string change = budget.max_unavailable.empty() ? "lower minAvailable" : "raise maxUnavailable";
  if (number) change += fmt::format(" to {}", budget.expected_pods - 1);
  const auto replicas = replicas_that_help(budget);
  if (!replicas || has_no_controller(about)) return change;
  std::string first;
  if (number && !about.complete && !about.held.empty() && about.held.front()->controller)
    first = fmt::format(
        "if {0} {1} wants more pods than exist, find out why it creates none (kubectl describe {0} {1} -n {2}); "
        "otherwise ",
        about.held.front()->controller->kind, about.held.front()->controller->name, budget.ns);
  return fmt::format("{}scale the controller to {} replicas during the drain, or {}", first, *replicas, change);
}

DiagnosisFact needs_all(const BudgetCase& about) {
  const PodDisruptionBudget& budget = about.budget;
  const bool number = parse_number<std::int64_t>(budget.min_available).has_value();
  if (const std::string way_out = way_out_of_its_controller(about); !way_out.empty())
    return {budget.expected_pods == 1 ? reason::budget_of_single_pod : reason::budget_needs_all_pods,
            {},
            fmt::format("it needs {} healthy of {} ({}), so it allows no disruption; {}", budget.desired_healthy,
                        pods(budget.expected_pods), field_of(budget), way_out),
            controller_hold};
  if (budget.expected_pods == 1)
    return {reason::budget_of_single_pod,
            {},
            fmt::format("it protects a single pod ({}, needs {} healthy of 1), so this pod cannot be evicted; {}; {}",
                        field_of(budget), budget.desired_healthy, ways_out(about),
                        has_no_controller(about) ? "the pod has no controller, so nothing creates it again"
                                                 : "or delete the pod with kubectl if its owner accepts the outage"),
            controller_hold};
  return {reason::budget_needs_all_pods,
          {},
          (number ? fmt::format("it needs {} healthy pods ({}), and {} exist, so it allows no disruption; ",
                                budget.desired_healthy, field_of(budget), budget.expected_pods)
                  : fmt::format("it needs all {} healthy ({}), so it allows no disruption until more pods exist; ",
                                pods(budget.expected_pods), field_of(budget))) +
              ways_out(about),
          controller_hold};
}

DiagnosisFact counts_nothing(const BudgetCase& about) {
  const PodDisruptionBudget& budget = about.budget;
  const std::string way_out =
      about.held.empty() || has_no_controller(about)
          ? ". It counts pods without a controller only if minAvailable is an integer: set that, or give the pods a "
            "controller"
          : fmt::format("; check that the controllers of its pods have replicas (kubectl describe pdb {} -n {})",
                        budget.name, budget.ns);
  return {reason::budget_misconfigured,
          {},
          fmt::format("it counts no pod ({}, expectedPods 0), so it allows no disruption{}", field_of(budget), way_out),
          controller_hold};
}

DiagnosisFact closed_though_healthy(const PodDisruptionBudget& budget) {
  return {reason::budget_misconfigured,
          {},
          fmt::format("all its pods are healthy ({} of {}, {} needed), but it allows no disruption ({}); {}",
                      budget.current_healthy, budget.expected_pods, budget.desired_healthy, field_of(budget),
                      see_controller),
          controller_hold};
}

DiagnosisFact waiting(const BudgetCase& about) {
  const PodDisruptionBudget& budget = about.budget;
  const std::string count = fmt::format("it needs {} healthy to allow an eviction, and has {} of {}",
                                        budget.desired_healthy + 1, budget.current_healthy, pods(budget.expected_pods));
  const auto states = unhealthy(about);
  std::string what;
  if (!states.empty())
    what = fmt::format("{}; the budget allows an eviction when enough of its pods are Ready", listed(states));
  else if (about.members)
    what =
        "the other pods are terminating or do not exist yet; if none is terminating, kubectl describe on their "
        "controller shows why it creates none";
  else
    what = fmt::format(
        "the other pods are not Ready, are terminating or do not exist yet (kubectl get pods -n {} -o wide)",
        budget.ns);
  return {reason::budget_awaits_replacement, {}, count + ": " + what, passing_hold};
}

DiagnosisFact never_opens(const BudgetCase& about) {
  const PodDisruptionBudget& budget = about.budget;
  std::string way_out = way_out_of_its_controller(about);
  if (way_out.empty())
    way_out = fmt::format(
        "change it to allow at least one disruption{}, or delete the pods with kubectl if their owner agrees{}",
        budget.managed_by.empty() ? "" : fmt::format(" (managed by {})", budget.managed_by),
        has_no_controller(about) ? " (nothing creates a pod without a controller again)" : "");
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
  if (budget.expected_pods <= 0) return counts_nothing(about);
  if (budget.desired_healthy >= budget.expected_pods) return needs_all(about);
  if (stuck) return deadlock(about);
  if (budget.current_healthy >= budget.expected_pods) return closed_though_healthy(budget);
  // The budget has more healthy pods than it needs. So evictions in progress exhaust it: the API server has counted
  // them, and the disruption controller has not. That needs no diagnosis.
  if (budget.current_healthy > budget.desired_healthy) return std::nullopt;
  return waiting(about);
}

}  // namespace

Scope about(std::span<const TrackedPod* const> pods) {
  Scope scope;
  scope.pods.reserve(pods.size());
  for (const TrackedPod* tracked : pods) scope.pods.push_back(tracked->pod.uid);
  return scope;
}

DiagnosisFact overlap_fact(const k8s::Pod& pod, std::string message) {
  return {reason::overlapping_budgets, "pod " + pod.key(), std::move(message), {}, about(pod)};
}

DiagnosisFact protected_fact(const k8s::Pod& pod, const std::string& message) {
  return {reason::do_not_disrupt, "pod " + pod.key(),
          message +
              "; remove the annotation if its owner agrees, or ignore it (agent: --ignore-do-not-disrupt; haulout "
              "drain: omit --respect-do-not-disrupt)",
          controller_hold, about(pod)};
}

DiagnosisFact local_volume_fact(const k8s::Pod& pod, std::string message) {
  DiagnosisFact fact{reason::local_volume, "pod " + pod.key(), std::move(message), {}, about(pod)};
  // The diagnosis is only advice: it describes what will happen after the eviction.
  fact.scope.holds = false;
  return fact;
}

DiagnosisFact namespace_fact(const std::string& ns, const std::vector<const k8s::Pod*>& pods,
                             const std::string& cause) {
  return {
      reason::namespace_stuck_terminating, "namespace " + ns,
      fmt::format("it has been terminating for more than {} minutes{}. Meanwhile the server evicts none of its pods "
                  "({}). See what is left in it (kubectl get namespace {} -o yaml), and delete that or repair the "
                  "controller that must delete it",
                  std::chrono::duration_cast<std::chrono::minutes>(namespace_hold).count(),
                  cause.empty() ? "" : " (" + cause + ")", one_of(pods.front()->key(), pods.size()), ns),
      namespace_hold, about(pods)};
}

std::optional<DiagnosisFact> diagnose_leaving(const k8s::Pod& pod, bool overdue, bool node_ready) {
  const std::string subject = "pod " + pod.key();
  // While the containers run, it is not the finalizers that prevent the deletion, and removing them would be dangerous.
  // The end of the grace period does not prove that the containers have ended: the kubelet may be dead, or a preStop
  // hook may hang.
  if (containers_have_ended(pod) && !pod.finalizers.empty())
    return DiagnosisFact{
        reason::pod_finalizer, subject,
        fmt::format("only its finalizers keep it from being deleted: {}; the controllers that set them must "
                    "remove them (kubectl get pod {} -n {} -o jsonpath={{.metadata.finalizers}})",
                    fmt::join(pod.finalizers, ", "), pod.name, pod.ns),
        controller_hold, about(pod)};
  // If the node is not Ready, one diagnosis of the node reports that, instead of one for each pod.
  if (!overdue || !node_ready) return std::nullopt;
  const std::string see = fmt::format("kubectl describe pod {} -n {}", pod.name, pod.ns);
  return DiagnosisFact{
      reason::pod_stuck_terminating, subject,
      pod.containers_terminated
          ? fmt::format("its containers have ended, but the kubelet does not remove it, usually because of a volume "
                        "that cannot be unmounted; see its Events ({}) and the kubelet's log on the node",
                        see)
          : fmt::format("it still exists 60 s after its grace period: usually a container or its preStop hook does not "
                        "end; see {}, and on the node the kubelet's log (journalctl -u kubelet)",
                        see),
      controller_hold, about(pod)};
}

bool is_held(const TrackedPod& tracked) {
  return tracked.state == PodState::parked ||
         ((tracked.state == PodState::in_flight || tracked.state == PodState::queued) && tracked.was_parked);
}

std::vector<DiagnosisFact> diagnose(const Pipeline& pipeline, const NodeFacts& node, const Known& known) {
  std::vector<DiagnosisFact> facts;
  diagnose_node(pipeline, node, facts);
  Held held;
  for (const TrackedPod* tracked : pipeline.leaving())
    diagnose_pod(*tracked, pipeline.book(), node, known, held, facts);
  diagnose_budgets(held, pipeline.book(), node, known, facts);
  diagnose_webhooks(pipeline, held, known, facts);
  diagnose_policies(held, facts);
  diagnose_namespaces(held, known, facts);
  return facts;
}

DiagnosisBoard::Changes DiagnosisBoard::update(const std::vector<DiagnosisFact>& facts, TimePoint now, WallTime wall) {
  Changes changes;
  std::map<std::pair<std::string, std::string>, const DiagnosisFact*> current;
  for (const DiagnosisFact& fact : facts) current.emplace(std::pair(fact.code, fact.subject), &fact);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (current.contains(entry->first)) {
      ++entry;
      continue;
    }
    if (entry->second.raised) changes.withdrawn.push_back(entry->second.diagnosis);
    entry = entries_.erase(entry);
  }
  for (const auto& [key, fact] : current) {
    auto [entry, inserted] = entries_.try_emplace(key);
    if (inserted) {
      entry->second.diagnosis = {fact->code, fact->subject, fact->message, wall, fact->scope};
      entry->second.due = now + fact->hold;
    }
    entry->second.diagnosis.message = fact->message;
    entry->second.diagnosis.scope = fact->scope;
    if (entry->second.raised || now < entry->second.due) continue;
    entry->second.raised = true;
    changes.raised.push_back(entry->second.diagnosis);
  }
  return changes;
}

TimePoint DiagnosisBoard::next_due(TimePoint now) const {
  TimePoint next = TimePoint::max();
  for (const auto& [key, entry] : entries_)
    if (!entry.raised && entry.due > now) next = std::min(next, entry.due);
  return next;
}

std::vector<Diagnosis> DiagnosisBoard::active() const {
  std::vector<Diagnosis> active;
  for (const auto& [key, entry] : entries_)
    if (entry.raised) active.push_back(entry.diagnosis);
  return active;
}

DiagnosisFact diagnose_not_ready(const std::string& node) {
  return {
      reason::kubelet_not_ready, "node " + node,
      fmt::format(
          "its kubelet does not report it Ready, and pods are not deleted while no kubelet runs; see systemctl status "
          "kubelet on the node, and the conditions of the Node. If the machine is lost, delete the Node: its pods are "
          "then deleted, too. To leave terminating pods behind: haulout drain {} --skip-wait-for-delete-timeout=1",
          node),
      controller_hold};
}

void diagnose_node(const Pipeline& pipeline, const NodeFacts& node, std::vector<DiagnosisFact>& facts) {
  const std::string subject = "node " + node.name;
  if (node.gone)
    facts.push_back(
        {reason::node_gone, subject, "the Node was deleted or replaced, so its pods are not evicted any more", {}});
  if (!node.gone && node.expect_cordon && !node.unschedulable)
    facts.push_back(
        {reason::uncordoned,
         subject,
         fmt::format("the node was uncordoned{}, so no pod is evicted. haulout drain continues when it is cordoned "
                     "again (kubectl cordon {}); an agent ends this attempt and makes another one later",
                     node.unschedulable_manager.empty() ? "" : " (last writer: " + node.unschedulable_manager + ")",
                     node.name),
         {}});
  // A single 403 right after a reconnect proves nothing, so this diagnosis has a hold time.
  if (node.pods_error && k8s::is_forbidden(*node.pods_error))
    facts.push_back(
        {reason::right_missing, subject,
         fmt::format("{}; grant verbs list and watch on resource pods (API group \"\")", node.pods_error->message()),
         controller_hold});
  if (!node.gone && !node.ready && !pipeline.clear()) facts.push_back(diagnose_not_ready(node.name));
  if (only_own_pod_left(pipeline, node.own_uid))
    facts.push_back({reason::only_own_pod_left, subject,
                     "only the pod in which Haulout itself runs is left, and Haulout cannot wait for the deletion of "
                     "its own pod; run Haulout as a DaemonSet pod, or on another node",
                     controller_hold});
  diagnose_clock(node, facts);
}

DiagnosisFact diagnose_webhook(const WebhookCase& about) {
  const TrackedPod& first = *about.held.front();
  const WebhookRefusal& refusal = *first.refusal.webhook;
  const std::string whom = one_of(first.pod.key(), about.held.size());
  const std::string subject = "webhook " + refusal.name;
  if (refusal.down)
    return {reason::webhook_down, subject,
            fmt::format("the API server cannot call it, and therefore refuses the eviction of {} ({}); {}; or have its "
                        "failurePolicy changed ({})",
                        whom, refusal.words, way_to_its_servers(about), configurations),
            controller_hold, drain::about(about.held)};
  return {
      reason::webhook_denied, subject,
      fmt::format("it denies the eviction of {} ({}). It may allow the eviction later; if it does not, ask the owner "
                  "of the webhook ({})",
                  whom, refusal.words, configurations),
      controller_hold, drain::about(about.held)};
}

std::optional<DiagnosisFact> diagnose_budget(const BudgetCase& about) {
  auto fact = judge(about);
  if (fact) fact->subject = "PodDisruptionBudget " + about.budget.key();
  return fact;
}

}  // namespace haulout::drain
