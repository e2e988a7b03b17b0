// Diagnoses about controllers with few replicas whose pods have yet to leave the node. Pure.
#pragma once

#include <vector>

#include "drain/controller_guard.hpp"
#include "drain/diagnoses.hpp"

namespace haulout::drain {

// Appends these facts. `pods` is Pipeline::leaving().
//   OnlyReplicaEvicted    The drain evicts the only pod of a controller.
//   LastReadyPods   All Ready pods of a controller are on this node, and neither a budget nor
//                     --max-unavailable-per-controller keeps them from leaving together. Not reported if the drain
//                     cannot read budgets, since one may exist.
//   ReplicasUnknown  The number of replicas could not be found out.
//   OverrideInvalid  An annotation has an invalid value.
// The first two are reported only if Guards::single_replica is not `allow`.
void diagnose_replicas(const std::vector<TrackedPod*>& pods, const ControllerGuard& guard, bool budgets_visible,
                       std::vector<DiagnosisFact>& facts);

}  // namespace haulout::drain
