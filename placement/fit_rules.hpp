// The judgement of fit.hpp over the objects of a cluster. Pure.
//
// Free is what is allocatable less the requests of all pods that have not finished. Pods that wait for a node take
// theirs first, by priority; then those that leave, the largest first, one after the other. One whose place is not
// known takes its room on every node that could have it, as far as "fits" goes, and on none as far as "does not fit"
// goes. The closed nodes, cordoned ones and those that are not Ready get none.
//
// That order is one of many, so what was placed before proves no "does not fit": that is a pod which finds no room
// before any other has been placed, or of which sums prove that it finds none beside them (sums.hpp). Nor do pods that
// are terminating on other nodes prove one: their room is taken as long as they are there, and a pod that finds none
// has to find none without them, too.
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

// What of it is needed here: a fraction of its memory.
Object essence_of_pod(const Json& pod);
Object essence_of_node(const Json& node);

}  // namespace haulout::placement
