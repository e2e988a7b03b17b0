// What a drain says about gangs (gangs.hpp), and whether one is broken already. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "drain/diagnoses.hpp"
#include "drain/pipeline.hpp"

namespace haulout::drain {

// Returns true if the gang of the pod does not run as a whole any more: since the drain has seen both this pod and
// another member of its gang, that member has begun to terminate without having finished. A member that was terminating
// when the drain first saw it, or before it saw this pod, proves nothing: it may be left over from an earlier start of
// the gang. Nor does one that was deleted unseen: it may have finished before.
bool is_in_broken_gang(const k8s::Pod& pod, const std::map<std::string, TrackedPod>& pods);

// Appends a GangBroken for each gang with members among `leaving` that are to be evicted and run. A gang that is broken
// already is not told of. `pods` are all pods that the drain knows. `policy` decides what is said about the way out.
void diagnose_gangs(const std::vector<TrackedPod*>& leaving, const std::map<std::string, TrackedPod>& pods,
                    const Policy& policy, std::vector<DiagnosisFact>& facts);

}  // namespace haulout::drain
