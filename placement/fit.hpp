// Checks whether the pods that leave a node would fit elsewhere, as far as this can be determined without the
// scheduler.
//
// The check places a copy of each pod as it is now. It places no pod without a controller, since nothing recreates it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "k8s/client.hpp"
#include "placement/objects.hpp"
#include "placement/pod_fit.hpp"

namespace haulout::placement {

// Limit for reading all nodes and pods of a large cluster page by page.
inline constexpr Duration fit_limit = std::chrono::minutes(5);

struct FitQuestion {
  std::set<std::string> leaving;  // UIDs; pods deleted since then are ignored
  std::set<std::string> closed;   // nodes that receive no pod, including the node that is being drained
};

// Reads all nodes and pods of the cluster page by page, and returns the answers sorted by the pods' names. An expired
// continue token restarts a list. Errc::decode if a response is not such a list. Otherwise fails as a list request
// does. Cancellable. Borrows `client`.
Task<std::vector<PodFit>> check_fit(k8s::Client& client, FitQuestion question, std::uint32_t page_size,
                                    TimePoint deadline);

struct ClusterView {
  std::vector<Object> nodes;
  std::vector<Object> pods;
};

// Answers the question for the objects of a cluster. Pure.
//
// Free capacity is what is allocatable, less the requests of all pods that have not finished. It is given first to the
// pods that wait for a node, by priority, and then to the leaving pods, the largest first. A pod whose node is not
// known counts on every node that could take it when "fits" is decided, and on none when "does not fit" is decided.
// Closed nodes, cordoned nodes and nodes that are not Ready receive no pods.
//
// The real order may differ, so earlier placements alone never prove "does not fit". One proof is that the pod fits
// nowhere before any other pod is placed. The other is by sums over all pods (Sums in fit.cpp). Pods that are
// terminating on other nodes use their capacity until they are deleted. "Does not fit" must also hold after their
// deletion.
std::vector<PodFit> judge(const ClusterView& view, const FitQuestion& question);

// Copies only the fields that are needed here, to save memory.
Object essence_of_pod(const Json& pod);
Object essence_of_node(const Json& node);

}  // namespace haulout::placement
