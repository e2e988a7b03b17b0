// Answers the question of fit.hpp for the objects of a cluster. Pure.
//
// Free capacity is what is allocatable, less the requests of all pods that have not finished. It is given first to the
// pods that wait for a node, by priority, and then to the leaving pods, the largest first. A pod whose node is not
// known counts on every node that could take it when "fits" is decided, and on none when "does not fit" is decided.
// Closed nodes, cordoned nodes and nodes that are not Ready receive no pods.
//
// The real order may differ, so earlier placements alone never prove "does not fit". One proof is that the pod fits
// nowhere before any other pod is placed. The other is by sums over all pods (sums.hpp). Pods that are terminating on
// other nodes use their capacity until they are deleted. "Does not fit" must also hold after their deletion.
#pragma once

#include <vector>

#include "placement/fit.hpp"
#include "placement/objects.hpp"

namespace haulout::placement {

struct ClusterView {
  std::vector<Object> nodes;
  std::vector<Object> pods;
};

std::vector<PodFit> judge(const ClusterView& view, const FitQuestion& question);

// Copies only the fields that are needed here, to save memory.
Object essence_of_pod(const Json& pod);
Object essence_of_node(const Json& node);

}  // namespace haulout::placement
