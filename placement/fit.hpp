// Checks whether the pods that must leave a node would fit on other nodes, as far as this can be determined without
// the scheduler. The preflight of a drain (--check-fit) and `haulout explain --fit` use it. The answer is: fits, does
// not fit, or unknown (pod_fit.hpp).
//
// The check assumes that the replacement of a pod is equal to the pod. It ignores pods without a controller and pods of
// DaemonSets, because they get no replacement on another node.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "k8s/client.hpp"
#include "placement/cluster_pages.hpp"
#include "placement/objects.hpp"
#include "placement/pod_fit.hpp"

namespace haulout::placement {

// The time that callers of check_fit() allow for reading all nodes and pods of a large cluster page by page.
inline constexpr Duration fit_limit = std::chrono::minutes(5);

struct FitQuestion {
  std::set<std::string> leaving;  // UIDs of the pods that must leave; pods that were deleted are ignored
  std::set<std::string> closed;   // nodes that receive no pod, including the node that is being drained
};

// Reads all nodes and pods of the cluster page by page, and returns the answers sorted by the pods' names. An expired
// continue token restarts a list. Fails with Errc::decode if a response is not such a list, and with any error of a
// list request. Cancellable. Borrows `client`.
Task<std::vector<PodFit>> check_fit(k8s::Client& client, FitQuestion question, std::uint32_t page_size,
                                    TimePoint deadline);

// Returns an answer for each pod of `question.leaving` that gets a replacement elsewhere, sorted by name. Pure.
//
// The free capacity of a node is its allocatable amounts less the requests of all its pods that have not finished. The
// check places first the pending pods, by priority, and then the pods that must leave, the largest first. If the node
// of a placed pod is uncertain, the pod counts on every node that could take it when "fits" is decided, and on no node
// when "does not fit" is decided. Closed nodes, cordoned nodes and nodes that are not Ready receive no pods.
//
// The scheduler may place the pods in another order. So it proves nothing that a pod fits on no node after this check
// has placed others. The answer is "does not fit" only if the pod fits on no node even before any other pod is placed,
// or if the pods together request more than all nodes that accept them have. Pods that are terminating on other nodes
// use their capacity until they are deleted. "Does not fit" must also hold after their deletion.
std::vector<PodFit> judge(const ClusterView& view, const FitQuestion& question);

}  // namespace haulout::placement
