// Whether the pods that leave a node would fit elsewhere, as far as that can be told without being the scheduler.
//
// What is placed is a copy of each pod as it is now; one without a controller is not placed, since nothing brings it
// back.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "k8s/client.hpp"
#include "placement/pod_fit.hpp"

namespace haulout::placement {

// What all nodes and pods of a large cluster may take, page by page.
inline constexpr Duration fit_limit = std::chrono::minutes(5);

struct FitQuestion {
  std::set<std::string> leaving;  // UIDs; those that have gone meanwhile are left out
  std::set<std::string> closed;   // nodes that get none of them: the one that they leave, and others
};

// Reads all nodes and all pods of the cluster, page by page, and judges. In the order of the pods' names. An expired
// continue token restarts a list; Errc::decode for what is no list of them. Fails as the two lists fail; may be
// cancelled.
Task<std::vector<PodFit>> check_fit(k8s::Client& client, FitQuestion question, std::uint32_t page_size,
                                    TimePoint deadline);

}  // namespace haulout::placement
