#include "drain/diagnoses.hpp"

#include <algorithm>

#include "k8s/status.hpp"

namespace haulout::drain {

namespace {

// Long enough for a controller to do its work, short enough to be told within 30 s.
constexpr Duration controller_hold = std::chrono::seconds(15);

bool is_zero(const std::string& value) {
  return value == "0" || value == "0%";
}

void diagnose_budgets(const TrackedPod& tracked, const BudgetBook& book, std::vector<DiagnosisFact>& facts) {
  const bool told_by_server = !book.visible() && tracked.last_verdict == EvictionVerdict::overlap;
  if (tracked.budgets.size() > 1 || told_by_server) {
    facts.push_back({"PDB_OVERLAP",
                     "pod " + tracked.pod.key(),
                     tracked.budgets.size() > 1 ? book.explain(tracked.budgets) : tracked.server_message,
                     {}});
    return;
  }
  for (const std::string& uid : tracked.budgets) {
    const auto found = book.budgets().find(uid);
    if (found == book.budgets().end()) continue;
    const auto& budget = found->second;
    const bool zero = is_zero(budget.max_unavailable) || budget.min_available == "100%";
    if (!zero || budget.disruptions_allowed > 0) continue;
    const std::string field =
        budget.min_available == "100%" ? "minAvailable: 100%" : "maxUnavailable: " + budget.max_unavailable;
    facts.push_back(
        {"PDB_ZERO",
         "PodDisruptionBudget " + budget.key(),
         fmt::format("it says {}, which never allows an eviction of its pods; change that field, or delete the "
                     "pods by hand when their owner agrees",
                     field),
         {}});
  }
}

void diagnose_terminating(const TrackedPod& tracked, std::vector<DiagnosisFact>& facts) {
  const k8s::Pod& pod = tracked.pod;
  const bool finished = pod.deletion_grace_seconds.value_or(1) == 0 || pod.containers_terminated || tracked.stuck;
  if (pod.finalizers.empty() || !finished) return;
  facts.push_back(
      {"POD_FINALIZER", "pod " + pod.key(),
       fmt::format("its containers have ended, but its finalizers hold it: {}; the controller that set them has "
                   "to remove them (kubectl get pod {} -n {} -o jsonpath={{.metadata.finalizers}})",
                   fmt::join(pod.finalizers, ", "), pod.name, pod.ns),
       controller_hold});
}

void diagnose_pod(const TrackedPod& tracked, const BudgetBook& book, std::vector<DiagnosisFact>& facts) {
  switch (tracked.state) {
    case PodState::terminating: diagnose_terminating(tracked, facts); return;
    case PodState::parked: break;
    // A pod that is being tried again keeps its diagnosis until the try has succeeded.
    case PodState::in_flight:
    case PodState::queued:
      if (!tracked.was_parked) return;
      break;
    case PodState::left:
    case PodState::vanished: return;
  }
  if (tracked.hold == TrackedPod::Hold::pinned) {
    facts.push_back({"POD_PINNED", "pod " + tracked.pod.key(), tracked.report.message, {}});
    return;
  }
  if (tracked.last_verdict == EvictionVerdict::forbidden && tracked.refusals >= 2) {
    facts.push_back(
        {"RBAC_DENIED",
         "pod " + tracked.pod.key(),
         fmt::format("{}; grant verb create on resource pods/eviction (API group \"\")", tracked.server_message),
         {}});
    return;
  }
  diagnose_budgets(tracked, book, facts);
}

void diagnose_node(const NodeFacts& node, std::vector<DiagnosisFact>& facts) {
  if (node.gone)
    facts.push_back(
        {"NODE_GONE", "node " + node.name, "the Node was deleted or replaced; its pods are not evicted any more", {}});
  if (!node.gone && node.expect_cordon && !node.unschedulable)
    facts.push_back(
        {"UNCORDONED_MEANWHILE",
         "node " + node.name,
         fmt::format("somebody{} made the node schedulable again: nothing is evicted until it is cordoned "
                     "(kubectl cordon {})",
                     node.unschedulable_manager.empty() ? "" : " (last writer: " + node.unschedulable_manager + ")",
                     node.name),
         {}});
  if (node.pods_error && k8s::is_forbidden(*node.pods_error))
    facts.push_back(
        {"RBAC_DENIED",
         "node " + node.name,
         fmt::format("{}; grant verbs list and watch on resource pods (API group \"\")", node.pods_error->message()),
         {}});
}

}  // namespace

std::vector<DiagnosisFact> diagnose(const Pipeline& pipeline, const NodeFacts& node) {
  std::vector<DiagnosisFact> facts;
  diagnose_node(node, facts);
  for (const TrackedPod* tracked : pipeline.leaving()) diagnose_pod(*tracked, pipeline.book(), facts);
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
      entry->second.diagnosis = {fact->code, fact->subject, fact->message, wall};
      entry->second.due = now + fact->hold;
    }
    entry->second.diagnosis.message = fact->message;
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

}  // namespace haulout::drain
