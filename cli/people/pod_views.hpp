// For `haulout explain`: what a drain by an agent would do to each pod of a node if the drain began now, and which
// budgets (PodDisruptionBudgets) select those pods. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drain/pod_filter.hpp"
#include "k8s/objects.hpp"
#include "placement/pod_fit.hpp"

namespace haulout::cli {

enum class PodFate {
  // The eviction of the pod cannot succeed now, because of a budget or because its namespace is being deleted.
  blocked,
  parked,   // policy parks the pod, for example because an annotation protects it
  refused,  // policy forbids the drain because of the pod
  leaving,  // the pod is already terminating
  evict,
  stay,
};
std::string_view to_string(PodFate fate);
// Returns true if a pod with this fate keeps a drain from ending: blocked, parked or refused.
bool holds_up(PodFate fate);

// Whether the API server would accept the eviction of a pod now, whatever Haulout's own policy is. `unknown` if budgets
// cannot be read; `not_asked` for a pod that stays or is terminating.
enum class Evictable { yes, no, unknown, not_asked };
std::string_view to_string(Evictable evictable);  // returns "" for `not_asked`

// The status of a budget that selects a pod.
struct PodBudget {
  std::string key;
  std::int32_t allowed = 0, healthy = 0, desired = 0;
  bool operator==(const PodBudget&) const = default;
};

struct PodView {
  std::string key;
  std::string uid{};
  std::string controller;  // "ReplicaSet/web-6d4b9"; empty: the pod has none
  PodFate fate = PodFate::evict;
  std::string reason;                    // CamelCase reason of `fate`, or of a remark about the eviction; empty: none
  std::string message;                   // a clause that explains `fate` to a person
  std::vector<drain::Finding> findings;  // remarks of the drain's filters about the pod
  std::vector<PodBudget> budgets{};      // the budgets that select the pod
  Evictable evictable = Evictable::not_asked;
  std::optional<placement::PodFit> fit{};  // whether the pod fits on another node; unset: not checked
  bool operator==(const PodView&) const = default;
};

struct BudgetView {
  std::string key;
  std::int32_t allowed = 0, healthy = 0, needed = 0;
  std::size_t pods = 0;  // number of pods of the node that the budget selects and that a drain would evict
  bool operator==(const BudgetView&) const = default;
};

// Returns the pods in the order in which a drain would evict them, then the pods that stay, by name. `budgets` are all
// budgets of the cluster; unset means that they cannot be read. Then no pod counts as blocked by a budget, and
// `evictable` is never `yes`.
std::vector<PodView> pod_views(const std::vector<k8s::Pod>& pods,
                               const std::optional<std::vector<k8s::PodDisruptionBudget>>& budgets,
                               const drain::Policy& policy, const drain::DaemonSetStates& daemon_sets, WallTime now,
                               bool node_ready = true);
// Returns the budgets that select at least one pod of the node that a drain would evict, sorted by name.
std::vector<BudgetView> budget_views(const std::vector<k8s::Pod>& pods,
                                     const std::vector<k8s::PodDisruptionBudget>& budgets, const drain::Policy& policy,
                                     const drain::DaemonSetStates& daemon_sets, WallTime now);

}  // namespace haulout::cli
