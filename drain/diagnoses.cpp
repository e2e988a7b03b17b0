#include "drain/diagnoses.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "drain/budget_diagnosis.hpp"
#include "drain/node_diagnoses.hpp"
#include "drain/reasons.hpp"
#include "drain/text.hpp"
#include "drain/webhook_diagnosis.hpp"

namespace haulout::drain {

Scope about(std::span<const TrackedPod* const> pods) {
  Scope scope;
  scope.pods.reserve(pods.size());
  for (const TrackedPod* tracked : pods) scope.pods.push_back(tracked->pod.uid);
  return scope;
}

namespace {

// Held pods, grouped by what holds them: one diagnosis covers a whole group.
struct Held {
  std::map<std::string, std::vector<const k8s::Pod*>> by_budget;     // UID of the budget
  std::map<std::string, std::vector<const k8s::Pod*>> by_namespace;  // name of the terminating namespace
  std::map<std::pair<std::string, bool>, std::vector<const TrackedPod*>> by_webhook;  // name, and whether it is down
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
  // A single refusal right after a reconnect is not conclusive.
  const bool again = tracked.refusal.times >= 2;
  const EvictionVerdict verdict = tracked.refusal.verdict;
  if (verdict == EvictionVerdict::forbidden && again) {
    facts.push_back(
        {reason::right_missing,
         "pod " + tracked.pod.key(),
         fmt::format("{}; grant verb create on resource pods/eviction (API group \"\")", tracked.refusal.message),
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
                     fmt::format("it denies the eviction of {} ({}); ask its owner (kubectl get "
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

}  // namespace

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
  // Advice: it only describes what will follow after the eviction.
  fact.scope.holds = false;
  return fact;
}

DiagnosisFact namespace_fact(const std::string& ns, const std::vector<const k8s::Pod*>& pods,
                             const std::string& cause) {
  return {reason::namespace_stuck_terminating, "namespace " + ns,
          fmt::format("it has been terminating for more than {} minutes, and the server evicts none of its pods ({}) "
                      "until it is deleted{}; kubectl get namespace {} -o yaml shows what is left in it",
                      std::chrono::duration_cast<std::chrono::minutes>(namespace_hold).count(),
                      one_of(pods.front()->key(), pods.size()), cause.empty() ? "" : ": " + cause, ns),
          namespace_hold, about(pods)};
}

std::optional<DiagnosisFact> diagnose_leaving(const k8s::Pod& pod, bool overdue, bool node_ready) {
  const std::string subject = "pod " + pod.key();
  // While its containers run, its finalizers are not what keeps the pod, and removing them would be dangerous. The end
  // of its grace period does not prove that they have ended: the kubelet may be dead, or a preStop hook may hang.
  if (containers_have_ended(pod) && !pod.finalizers.empty())
    return DiagnosisFact{
        reason::pod_finalizer, subject,
        fmt::format("its containers have ended, but its finalizers keep it: {}; the controller that set them must "
                    "remove them (kubectl get pod {} -n {} -o jsonpath={{.metadata.finalizers}})",
                    fmt::join(pod.finalizers, ", "), pod.name, pod.ns),
        controller_hold, about(pod)};
  // If the node is not Ready, one diagnosis of the node says so, instead of one for each pod.
  if (!overdue || !node_ready) return std::nullopt;
  const std::string see = fmt::format("kubectl describe pod {} -n {}", pod.name, pod.ns);
  return DiagnosisFact{
      reason::pod_stuck_terminating, subject,
      pod.containers_terminated
          ? fmt::format("its containers have ended, but the kubelet does not remove it, usually because of a volume "
                        "that cannot be unmounted; see its Events ({}) and the kubelet's log on the node",
                        see)
          : fmt::format("it still exists 60 s after its grace period: a container or its preStop hook does not end; "
                        "see {}, and on the node the kubelet's log (journalctl -u kubelet)",
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

}  // namespace haulout::drain
