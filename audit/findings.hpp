// The findings of an audit that follow from the objects alone, without a rehearsal. Each find_… function looks for some
// of the kinds in finding_kinds() and adds what it finds. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "audit/report.hpp"
#include "audit/world.hpp"

namespace haulout::audit {

struct FindingKind {
  std::string_view id;
  std::string_view meaning;  // one sentence for a list of rules
};
const std::vector<FindingKind>& finding_kinds();

// Collects findings by owner. Borrows the world.
class Findings {
 public:
  explicit Findings(const World& world) : world_(world) {}

  // Adds a finding about these pods (indexes into World::pods). Its owner is the one of most of the pods, and its nodes
  // are theirs. Adds the pods to an equal finding that is there already. Ignores a finding without pods.
  void add(Finding finding, const std::vector<std::size_t>& pods);
  void add(OwnerName owner, Finding finding);
  // Returns true if a finding of the owner that blocks drains names the node.
  bool blocks(const OwnerName& owner, const std::string& node) const;
  // Returns true if the owner has a finding with this id that names the node.
  bool has(const OwnerName& owner, const std::string& id, const std::string& node) const;
  // Calls visit(owner, finding) for each finding.
  template <class Visit>
  void each(Visit visit) const {
    for (const auto& [owner, findings] : found_)
      for (const auto& [key, finding] : findings) visit(owner, finding);
  }
  // Returns the owners, sorted as Report::owners.
  std::vector<Owner> owners() const;

 private:
  // Returns true if a finding of the owner names the node and fulfils the condition.
  template <class Condition>
  bool any_about(const OwnerName& owner, const std::string& node, Condition condition) const;

  const World& world_;
  std::map<OwnerName, std::map<std::string, Finding>> found_;  // by key
};

// BudgetNeverOpens, BrokenBudget, BudgetMatchesNothing, TwoBudgets
void find_budget_faults(const World& world, Findings& findings);
// SingleReplica, AllReplicasOnOneNode, QuorumUnprotected, GangBroken
void find_thin_services(const World& world, Findings& findings);
// UnmanagedPod, EmptyDir, HostPath, LongGrace, FinalizerHangs, HeldByPolicy
void find_pod_traits(const World& world, Findings& findings);
// PinnedPod, VolumeOnOneNode, NoRoom
void find_bound_pods(const World& world, Findings& findings);
// WebhookOnEvictions
void find_webhooks(const World& world, Findings& findings);

// Calls all these functions; for manifests only those that need neither nodes nor running pods.
void find_all(const World& world, Findings& findings);

}  // namespace haulout::audit
