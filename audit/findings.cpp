#include "audit/findings.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "drain/reasons.hpp"

namespace haulout::audit {
namespace {

OwnerName owner_of_most(const World& world, const std::vector<std::size_t>& pods) {
  std::map<OwnerName, std::size_t> counts;
  for (const std::size_t pod : pods) ++counts[world.group_of(world.pods[pod]).owner];
  return std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
}

template <class T>
void merge_sorted(std::vector<T>& into, const std::set<T>& more) {
  std::set<T> all(into.begin(), into.end());
  all.insert(more.begin(), more.end());
  into.assign(all.begin(), all.end());
}

}  // namespace

const std::vector<FindingKind>& finding_kinds() {
  static const std::vector<FindingKind> kinds = {
      {"AllReplicasOnOneNode", "All pods of a controller with several replicas are on one node."},
      {"BrokenBudget", "A PodDisruptionBudget allows no eviction because pods that it counts are not Ready."},
      {"BudgetMatchesNothing", "A PodDisruptionBudget selects no pod."},
      {"BudgetNeverOpens", "A PodDisruptionBudget allows no eviction even if all its pods are healthy."},
      {reason::drain_blocked, "The rehearsed drain of a node did not end because of a pod."},
      {reason::empty_dir, "Pods have emptyDir volumes, whose data an eviction deletes."},
      {"FinalizerHangs", "A deleted pod stays because of a finalizer."},
      {reason::gang_broken, "An eviction stops a group of pods that runs only as a whole."},
      {"HeldByPolicy", "The options of the drain make it wait for a pod, or refuse it because of one."},
      {"HostPath", "Pods use directories of their machine, which a replacement on another node does not have."},
      {"LongGrace", "Pods may take longer than ten minutes to terminate."},
      {"NoRoom", "A pod fits on no other node."},
      {"PinnedPod", "A pod can run only on its node, or its replacement may come back to it."},
      {"QuorumUnprotected", "No PodDisruptionBudget protects the quorum of a StatefulSet."},
      {reason::single_replica, "A controller has one pod, so its service is down while the pod moves."},
      {"TwoBudgets", "Several PodDisruptionBudgets select a pod, so the server refuses every eviction."},
      {"UnmanagedPod", "A pod has no controller, so nothing creates it again."},
      {"VolumeOnOneNode", "A volume of a pod exists only on the pod's node."},
      {"WebhookOnEvictions", "An admission webhook can refuse evictions, or make them fail."},
  };
  return kinds;
}

void Findings::add(Finding finding, const std::vector<std::size_t>& pods) {
  if (pods.empty()) return;
  const OwnerName owner = owner_of_most(world_, pods);
  std::set<std::string> names, nodes;
  for (const std::size_t index : pods) {
    const k8s::Pod& pod = world_.pods[index].pod;
    names.insert(pod.key());
    if (!pod.node_name.empty()) nodes.insert(pod.node_name);
  }
  if (finding.object.empty()) finding.object = owner.text();
  merge_sorted(finding.pods, names);
  merge_sorted(finding.nodes, nodes);
  add(owner, std::move(finding));
}

void Findings::add(OwnerName owner, Finding finding) {
  finding.key = finding.id + '|' + owner.ns + '|' + owner.kind + '|' + owner.name + '|' + finding.object;
  const auto [known, is_new] = found_[owner].try_emplace(finding.key, finding);
  if (is_new) return;
  Finding& before = known->second;
  if (before.severity < finding.severity) {
    before.severity = finding.severity;
    before.text = std::move(finding.text);
    before.way_out = std::move(finding.way_out);
  }
  merge_sorted(before.pods, {finding.pods.begin(), finding.pods.end()});
  merge_sorted(before.nodes, {finding.nodes.begin(), finding.nodes.end()});
}

template <class Condition>
bool Findings::any_about(const OwnerName& owner, const std::string& node, Condition condition) const {
  const auto found = found_.find(owner);
  return found != found_.end() && std::ranges::any_of(found->second, [&](const auto& entry) {
           return condition(entry.second) && std::ranges::binary_search(entry.second.nodes, node);
         });
}

bool Findings::blocks(const OwnerName& owner, const std::string& node) const {
  return any_about(owner, node, [](const Finding& finding) { return finding.severity == Severity::blocks; });
}

bool Findings::has(const OwnerName& owner, const std::string& id, const std::string& node) const {
  return any_about(owner, node, [&](const Finding& finding) { return finding.id == id; });
}

std::vector<Owner> Findings::owners() const {
  std::map<OwnerName, const Group*> groups;
  for (const Group& group : world_.groups) groups.emplace(group.owner, &group);
  std::vector<Owner> owners;
  for (const auto& [name, findings] : found_) {
    Owner& owner = owners.emplace_back(Owner{name});
    if (const auto group = groups.find(name); group != groups.end()) {
      owner.team = group->second->team;
      owner.pods = group->second->pods.size();
    }
    for (const auto& [key, finding] : findings) owner.findings.push_back(finding);
    std::ranges::sort(owner.findings, [](const Finding& a, const Finding& b) {
      return std::tie(b.severity, a.key) < std::tie(a.severity, b.key);
    });
  }
  const auto nodes_of = [](const Owner& owner) {
    std::set<std::string> nodes;
    for (const Finding& finding : owner.findings) nodes.insert(finding.nodes.begin(), finding.nodes.end());
    return nodes.size();
  };
  std::ranges::sort(owners, [&](const Owner& a, const Owner& b) {
    return std::tuple(b.worst(), nodes_of(b), a.name) < std::tuple(a.worst(), nodes_of(a), b.name);
  });
  return owners;
}

void find_all(const World& world, Findings& findings) {
  find_budget_faults(world, findings);
  find_thin_services(world, findings);
  find_pod_traits(world, findings);
  if (!world.of_manifests) {
    find_bound_pods(world, findings);
    find_webhooks(world, findings);
  }
}

}  // namespace haulout::audit
