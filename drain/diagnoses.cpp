#include "drain/diagnoses.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "drain/budget_diagnosis.hpp"
#include "drain/reasons.hpp"
#include "drain/text.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {

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
  return {
      reason::admission_denied, "pod " + tracked.pod.key(),
      fmt::format("the server's admission denies its eviction ({}); ask whoever runs the policy or the plugin of the "
                  "API server that says so",
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
       fmt::format("the clock of the machine that Haulout runs on is {} s {} the API server's, and so are "
                   "the times told here; tokens and certificates may be taken for invalid. Set the clock "
                   "(timedatectl, chronyc tracking)",
                   std::chrono::duration_cast<std::chrono::seconds>(skew).count(), behind ? "behind" : "ahead of"),
       controller_hold,
       {.holds = false}});
}

constexpr std::string_view configurations = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations";

std::string state_of(const k8s::Pod& pod) {
  if (pod.ready) return "Ready";
  return pod.trouble.empty() ? "not Ready" : fmt::format("not Ready ({})", pod.trouble);
}

// Returns text about a pod of the webhook's Service on this node, since the drain itself may have evicted that pod.
std::string servers_here(const WebhookCase& about, const k8s::Service& service) {
  const TrackedPod* here = nullptr;
  const TrackedPod* left = nullptr;
  for (const auto& [uid, tracked] : about.pods) {
    if (!service.selects(tracked.pod)) continue;
    const bool leaves = tracked.state == PodState::vanished || tracked.state == PodState::terminating;
    (leaves ? left : here) = &tracked;
  }
  if (here) return fmt::format("; pod {} of them is on this node, {}", here->pod.key(), state_of(here->pod));
  if (!left) return {};
  return fmt::format(
      "; pod {} of them {} this node before pods that it judges: the annotation {}: \"1\" lets it go after them",
      left->pod.key(), left->state == PodState::vanished ? "has left" : "is leaving", drain_order_annotation);
}

std::string way_to_its_servers(const WebhookCase& about) {
  if (!about.service) return "see that the pods behind its Service run";
  if (!*about.service)
    return fmt::format(
        "its Service {} does not exist: if what it belonged to is gone for good, have its configuration "
        "deleted",
        about.held.front()->refusal.webhook->service);
  const k8s::Service& service = **about.service;
  if (!service.selector) return fmt::format("see that what stands behind its Service {} runs", service.key());
  return fmt::format("see that the pods behind its Service {} run (kubectl get pods -n {} -l '{}' -o wide){}",
                     service.key(), service.ns, k8s::to_string(*service.selector), servers_here(about, service));
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
              "; remove the annotation when its owner agrees, or drain without respect for "
              "it (of an agent --ignore-do-not-disrupt; of haulout drain the default, "
              "without --respect-do-not-disrupt)",
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
          fmt::format("it has been terminating for more than {} minutes, and the server evicts none of its "
                      "pods ({}) meanwhile{}; kubectl get namespace {} -o yaml names what is left in it",
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
        fmt::format("its containers have ended, but its finalizers hold it: {}; the controller that set them has "
                    "to remove them (kubectl get pod {} -n {} -o jsonpath={{.metadata.finalizers}})",
                    fmt::join(pod.finalizers, ", "), pod.name, pod.ns),
        controller_hold, about(pod)};
  // If the node is not Ready, one diagnosis of the node says so, instead of one for each pod.
  if (!overdue || !node_ready) return std::nullopt;
  const std::string see = fmt::format("kubectl describe pod {} -n {}", pod.name, pod.ns);
  return DiagnosisFact{
      reason::pod_stuck_terminating, subject,
      pod.containers_terminated
          ? fmt::format("its containers have ended, and the kubelet does not remove it: usually a volume that cannot "
                        "be unmounted; its Events ({}) and the kubelet's log on the node say which",
                        see)
          : fmt::format("it is still there 60 s after its grace period: a container that does not end, or its preStop "
                        "hook; see {}, and on the node the kubelet's log (journalctl -u kubelet)",
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
      fmt::format("its kubelet does not report it Ready, and pods cannot vanish without a kubelet; bring the kubelet "
                  "back (systemctl status kubelet on the node). If the machine is gone for good, delete the Node: "
                  "its pods go with it. To leave behind what is terminating: haulout drain {} "
                  "--skip-wait-for-delete-timeout=1",
                  node),
      controller_hold};
}

void diagnose_node(const Pipeline& pipeline, const NodeFacts& node, std::vector<DiagnosisFact>& facts) {
  const std::string subject = "node " + node.name;
  if (node.gone)
    facts.push_back(
        {reason::node_gone, subject, "the Node was deleted or replaced; its pods are not evicted any more", {}});
  if (!node.gone && node.expect_cordon && !node.unschedulable)
    facts.push_back(
        {reason::uncordoned,
         subject,
         fmt::format("somebody{} made the node schedulable again: nothing is evicted until it is cordoned "
                     "(kubectl cordon {})",
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
                     "only the pod that Haulout itself runs in is left, and it cannot watch its own end; run it as a "
                     "DaemonSet pod, or from another node",
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
            fmt::format("it cannot be called, so the server refuses the eviction of {} ({}); {}; or have its "
                        "failurePolicy changed ({})",
                        whom, refusal.words, way_to_its_servers(about), configurations),
            controller_hold, drain::about(about.held)};
  return {reason::webhook_denied, subject,
          fmt::format("it denies the eviction of {} ({}); that may be its way to say \"not yet\". If it stays, ask the "
                      "owner of the webhook ({})",
                      whom, refusal.words, configurations),
          controller_hold, drain::about(about.held)};
}

}  // namespace haulout::drain
