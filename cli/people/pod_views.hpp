// What a drain by an agent would do to each pod of a node if it began now, and the budgets that select such pods. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drain/pod_filter.hpp"
#include "k8s/objects.hpp"
#include "placement/pod_fit.hpp"

namespace haulout::cli {

enum class PodFate {
  blocked,  // its eviction cannot succeed now: a budget, or its namespace is being deleted
  parked,   // an annotation protects it; the drain waits until it no longer does
  refused,  // policy forbids the drain because of it
  leaving,  // it is terminating already
  evict,
  stay,
};
std::string_view to_string(PodFate fate);
// Whether a pod with this fate holds a drain up.
bool holds_up(PodFate fate);

// Whether the API server would accept the eviction of a pod now, whatever Haulout's own policy is. `unknown` if budgets
// cannot be read; `not_asked` for a pod that stays or is terminating.
enum class Evictable { yes, no, unknown, not_asked };
std::string_view to_string(Evictable evictable);  // "" for `not_asked`

// The status of a budget that selects a pod.
struct PodBudget {
  std::string key;
  std::int32_t allowed = 0, healthy = 0, desired = 0;
  bool operator==(const PodBudget&) const = default;
};

struct PodView {
  std::string key;
  std::string uid{};
  std::string controller;  // "ReplicaSet/web-6d4b9"; empty: it has none
  PodFate fate = PodFate::evict;
  std::string reason;                    // CamelCase; empty: nothing to remark on the eviction
  std::string message;                   // a clause about the pod
  std::vector<drain::Finding> findings;  // the remarks of all filters
  std::vector<PodBudget> budgets{};      // the budgets that select it
  Evictable evictable = Evictable::not_asked;
  std::optional<placement::PodFit> fit{};  // set only if the fit was checked
  bool operator==(const PodView&) const = default;
};

struct BudgetView {
  std::string key;
  std::int32_t allowed = 0, healthy = 0, needed = 0;
  std::size_t pods = 0;  // pods of this node that it selects and that would be evicted
  bool operator==(const BudgetView&) const = default;
};

// `budgets` are all budgets of the cluster. Unset, if they cannot be read: then no pod counts as blocked by one, and
// none is known to be evictable. Returns the pods in the order in which a drain would evict them, then the pods that
// stay, by name.
std::vector<PodView> pod_views(const std::vector<k8s::Pod>& pods,
                               const std::optional<std::vector<k8s::PodDisruptionBudget>>& budgets,
                               const drain::Policy& policy, const drain::DaemonSetStates& daemon_sets, WallTime now,
                               bool node_ready = true);
// The budgets that select at least one pod of the node that would be evicted, sorted by name.
std::vector<BudgetView> budget_views(const std::vector<k8s::Pod>& pods,
                                     const std::vector<k8s::PodDisruptionBudget>& budgets, const drain::Policy& policy,
                                     const drain::DaemonSetStates& daemon_sets, WallTime now);

}  // namespace haulout::cli
