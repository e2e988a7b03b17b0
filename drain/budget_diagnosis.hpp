// Why a PodDisruptionBudget allows no eviction, and the way out. Pure.
//
// Of everything that is true of a budget only the most specific is said: what would keep it closed whatever its pods
// do comes before what passes when they are healthy.
#pragma once

#include <optional>
#include <vector>

#include "drain/diagnosis_fact.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

// How long the server counts a pod that it let go as gone, although nothing deletes it (DeletionTimeout of the
// disruption controller; measured: 120.1 s).
inline constexpr Duration disrupted_pod_limit = std::chrono::minutes(2);
// So much later it must have been forgotten, whatever the clocks of API server and controller differ by.
inline constexpr Duration disrupted_pod_margin = std::chrono::seconds(30);
// With more pods under way than this, the server refuses every eviction (MaxDisruptedPodSize of the eviction handler).
inline constexpr std::size_t most_disrupted_pods = 2000;
// A budget that its controller has not looked at for this long is not about to be.
inline constexpr Duration unobserved_hold = std::chrono::seconds(60);

struct BudgetCase {
  const k8s::PodDisruptionBudget& budget;
  std::vector<const k8s::Pod*> held;  // the pods that it holds back here, as last seen
  WallTime server_now;
  const std::vector<k8s::Pod>* members = nullptr;  // every pod that it selects; nullptr: not known
};

// Nothing when it is open, or closed only until evictions that are under way have ended.
std::optional<DiagnosisFact> diagnose_budget(const BudgetCase& about);

}  // namespace haulout::drain
