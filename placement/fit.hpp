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

}  // namespace haulout::placement
