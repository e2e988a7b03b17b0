// Where a pod finds room, decided as kube-scheduler's filters do: schedulable and Ready nodes, taints, nodeSelector and
// required node affinity, requests against what is allocatable, required pod anti-affinity (both ways). The node with
// the fewest pods wins. Pure.
//
// Not modelled: pod affinity, topology spread, host ports, where volumes can be attached, preemption.
// Nodes that state nothing allocatable have room without end.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/objects.hpp"

namespace haulout::sim {

struct Placement {
  std::string node;     // empty: none fits
  std::string message;  // then: why, in kube-scheduler's words
};

// `under_way`: node by uid of the pods that are being bound; an empty node is none yet.
Placement place(const Json& pod, const std::vector<Object>& nodes, const std::vector<Object>& pods,
                const std::map<std::string, std::string>& under_way);

// Whether it tolerates every taint of the node that keeps pods away, and whether selector and affinity want the node.
bool tolerates_node(const Json& pod, const Json& node);
bool wants_node(const Json& pod, const Json& node);

// By resource, in thousandths: the sum of what runs at the same time, and never less than what an init container needs
// alone. "pods" is 1000.
std::map<std::string, std::int64_t> requests_of(const Json& pod);

}  // namespace haulout::sim
