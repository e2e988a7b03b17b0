// What a drain by an agent would do to each pod of a node if it began now, and the budgets that have a say. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drain/pod_filter.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {

enum class PodFate {
  blocked,  // a budget does not let it go now
  parked,   // waited for: its annotation protects it
  refused,  // policy does not let the drain begin because of it
  leaving,  // on its way already
  evict,
  stay,
};
std::string_view to_string(PodFate fate);
// Holds a drain up.
bool holds_up(PodFate fate);

struct PodView {
  std::string key;
  std::string controller;  // "ReplicaSet/web-6d4b9", empty without
  PodFate fate = PodFate::evict;
  std::string reason;                    // CamelCase; empty: nothing speaks against the eviction
  std::string message;                   // a clause about the pod
  std::vector<drain::Finding> findings;  // of every filter that had something to say
  bool operator==(const PodView&) const = default;
};

struct BudgetView {
  std::string key;
  std::int32_t allowed = 0, healthy = 0, needed = 0;
  std::size_t pods = 0;  // of this node that it selects and that would be evicted
  bool operator==(const BudgetView&) const = default;
};

// `budgets`: all of the cluster's, or nothing when they may not be seen: then no pod is known to be blocked. What holds
// a drain up comes first, then by name.
std::vector<PodView> pod_views(const std::vector<k8s::Pod>& pods,
                               const std::optional<std::vector<k8s::PodDisruptionBudget>>& budgets,
                               const drain::Policy& policy, const drain::DaemonSetStates& daemon_sets, WallTime now);
// Those that select a pod of the node which would be evicted, by name.
std::vector<BudgetView> budget_views(const std::vector<k8s::Pod>& pods,
                                     const std::vector<k8s::PodDisruptionBudget>& budgets, const drain::Policy& policy,
                                     const drain::DaemonSetStates& daemon_sets, WallTime now);

}  // namespace haulout::agent
