// Why a PodDisruptionBudget allows no eviction, and the remedy. Pure.
//
// If several causes apply, only the most specific one is reported. A cause that keeps the budget exhausted whatever its
// pods do comes before one that ends when they are healthy.
#pragma once

#include <optional>
#include <vector>

#include "drain/diagnosis_fact.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

// How long the disruption controller counts a pod of an accepted eviction as disrupted although nothing deletes the pod
// (its `DeletionTimeout`; measured: 120.1 s).
inline constexpr Duration disrupted_pod_limit = std::chrono::minutes(2);
// Extra time after `disrupted_pod_limit`, for the difference between the clocks of API server and disruption
// controller. After it the controller must have removed the pod from `disruptedPods`.
inline constexpr Duration disrupted_pod_margin = std::chrono::seconds(30);
// If `disruptedPods` has more entries than this, the server refuses every eviction (`MaxDisruptedPodSize` of its
// eviction handler).
inline constexpr std::size_t most_disrupted_pods = 2000;
// If the disruption controller has not processed a budget for this long, it will not do so soon.
inline constexpr Duration unobserved_hold = std::chrono::seconds(60);

struct BudgetCase {
  const k8s::PodDisruptionBudget& budget;
  std::vector<const k8s::Pod*> held;  // the pods on this node that it holds, as last seen
  WallTime server_now;
  const std::vector<k8s::Pod>* members = nullptr;  // all pods that it selects; nullptr: not known
};

// Returns nullopt if the budget allows a disruption, or will do so as soon as evictions under way have ended.
std::optional<DiagnosisFact> diagnose_budget(const BudgetCase& about);

}  // namespace haulout::drain
