// What is said of controllers with few replicas, as long as pods of theirs have yet to leave the node. Pure.
#pragma once

#include <vector>

#include "drain/controller_book.hpp"
#include "drain/diagnoses.hpp"

namespace haulout::drain {

// SINGLE_REPLICA: a pod that is the only one of its controller goes. LAST_READY_PODS: all Ready pods of a controller
// are here, and neither a budget nor --max-unavailable-per-controller keeps them from going together; where budgets may
// not be seen there may be one. REPLICAS_UNKNOWN: how many there are could not be found out.
// OVERRIDE_INVALID: an annotation that makes no sense. The first two only where single replicas are looked after.
// `pods`: Pipeline::leaving().
void diagnose_replicas(const std::vector<TrackedPod*>& pods, const ControllerBook& controllers, bool budgets_visible,
                       std::vector<DiagnosisFact>& facts);

}  // namespace haulout::drain
