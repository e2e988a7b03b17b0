// Expands manifests into the objects that a cluster would have after they were applied: each controller gets its pods,
// all running and Ready, on no node. Pure.
#pragma once

#include <vector>

#include "sim/objects.hpp"

namespace haulout::audit {

// Returns true if the objects are manifests, and not a snapshot: no Node, and no pod that runs on a node. A pod that
// only names a node (spec.nodeName) may be a manifest.
bool are_manifests(const std::vector<sim::Json>& objects);

// Largest number of pods that a controller gets, so that no manifest can exhaust the memory.
inline constexpr std::int64_t most_replicas = 1000;

// The pods of a controller are as many as its replicas, and at least `minReplicas` of a HorizontalPodAutoscaler whose
// target it is, because manifests of such a controller mostly do not say how many replicas it has.
// Adds the pods of Deployments, ReplicaSets, StatefulSets and Jobs, the claims of StatefulSets, and the missing fields
// of single pods. DaemonSets get no pods, because a drain leaves them.
std::vector<sim::Json> expanded(std::vector<sim::Json> objects);

}  // namespace haulout::audit
