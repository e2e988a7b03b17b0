// What becomes of the workloads while a fleet is updated: how few of their pods are Ready, how often these are evicted,
// and how long they have no room. Plain data.
#pragma once

#include <cstdint>
#include <string>

#include "base/duration.hpp"

namespace haulout::rehearse {

// The pods of one owner: the topmost controller of its pods, or a pod without a controller. Pods of DaemonSets and
// mirror pods are left out, because they stay on their nodes.
struct OwnerCourse {
  std::string owner;         // "shop/Deployment/web"
  std::size_t replicas = 0;  // the replicas that it wants at the begin; its pods at the begin if `is_replaced` is false
  // A controller of the rehearsal replaces its pods. False for Jobs, custom resources and pods without a controller:
  // these have fewer and fewer pods in a rehearsal, whatever really becomes of them.
  bool is_replaced = false;
  bool has_budget = false;  // a PodDisruptionBudget selects its pods
  std::size_t pods = 0;     // its pods at the begin
  std::size_t ready = 0;    // Ready pods at the begin; pods that are terminating do not count
  std::size_t least_ready = 0;
  WallTime least_at{};  // when it first had so few; the begin if it never had fewer
  std::size_t evictions = 0;
  // Pods for which the scheduler found no node for a second or longer. Does not count those that had none at the begin.
  std::size_t without_room = 0;
  Duration longest_without_room{};
  bool operator==(const OwnerCourse&) const = default;
};

// A budget, as the disruption controller counts.
struct BudgetCourse {
  std::string budget;        // "shop/web"
  std::int64_t desired = 0;  // healthy pods that it must keep, at the begin
  std::int64_t healthy = 0;  // healthy pods at the begin
  std::int64_t least_healthy = 0;
  WallTime least_at{};  // when it first had so few; the begin if it never had fewer
  bool operator==(const BudgetCourse&) const = default;
};

}  // namespace haulout::rehearse
