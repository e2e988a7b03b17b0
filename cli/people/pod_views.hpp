// What a drain by an agent would do to each pod of a node if it began now, and the budgets that have a say. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drain/pod_filter.hpp"
#include "k8s/objects.hpp"
#include "placement/pod_fit.hpp"

namespace haulout::cli {

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

// Whether the API server would let it go if it were asked now, whatever our own policy says of it; nobody asks about a
// pod that stays.
enum class Evictable { yes, no, unknown, not_asked };
std::string_view to_string(Evictable evictable);  // the last one as ""

// What a budget that selects a pod says of itself.
struct PodBudget {
  std::string key;
  std::int32_t allowed = 0, healthy = 0, desired = 0;
  bool operator==(const PodBudget&) const = default;
};

struct PodView {
  std::string key;
  std::string uid{};
  std::string controller;  // "ReplicaSet/web-6d4b9", empty without
  PodFate fate = PodFate::evict;
  std::string reason;                    // CamelCase; empty: nothing speaks against the eviction
  std::string message;                   // a clause about the pod
  std::vector<drain::Finding> findings;  // of every filter that had something to say
  std::vector<PodBudget> budgets{};      // that select it
  Evictable evictable = Evictable::not_asked;
  std::optional<placement::PodFit> fit{};  // where that was asked for
  bool operator==(const PodView&) const = default;
};

struct BudgetView {
  std::string key;
  std::int32_t allowed = 0, healthy = 0, needed = 0;
  std::size_t pods = 0;  // of this node that it selects and that would be evicted
  bool operator==(const BudgetView&) const = default;
};

// `budgets`: all of the cluster's, or nothing when they may not be seen: then no pod is known to be blocked, and none
// to be evictable. In the order in which a drain would evict them, then those that stay, by name.
std::vector<PodView> pod_views(const std::vector<k8s::Pod>& pods,
                               const std::optional<std::vector<k8s::PodDisruptionBudget>>& budgets,
                               const drain::Policy& policy, const drain::DaemonSetStates& daemon_sets, WallTime now,
                               bool node_ready = true);
// Those that select a pod of the node which would be evicted, by name.
std::vector<BudgetView> budget_views(const std::vector<k8s::Pod>& pods,
                                     const std::vector<k8s::PodDisruptionBudget>& budgets, const drain::Policy& policy,
                                     const drain::DaemonSetStates& daemon_sets, WallTime now);

}  // namespace haulout::cli
