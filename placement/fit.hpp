// Whether the pods that leave a node would fit elsewhere, as far as that can be told without being the scheduler.
//
// Three answers, and "unknown" is never "fits". What is placed is a copy of each pod as it is now; one without a
// controller is not placed, since nothing brings it back.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/client.hpp"

namespace haulout::placement {

enum class Fit { fits, does_not_fit, unknown };
std::string_view to_string(Fit fit);  // "fits", "does-not-fit", "unknown"

struct PodFit {
  std::string pod;  // namespace/name
  std::string uid;
  Fit fit = Fit::unknown;
  std::string node;                  // fits: where there is room for it, which need not be where it will go
  std::vector<std::string> plugins;  // does not fit: the scheduler's plugins that say no
  std::string message;  // does not fit: why, in the scheduler's words; unknown: what keeps it from being known
  bool operator==(const PodFit&) const = default;
};

struct FitQuestion {
  std::set<std::string> leaving;  // UIDs; those that have gone meanwhile are left out
  std::set<std::string> closed;   // nodes that get none of them: the one that they leave, and others
};

// Reads all nodes and all pods of the cluster, page by page, and judges. In the order of the pods' names. Fails as the
// two lists fail; may be cancelled.
Task<std::vector<PodFit>> check_fit(k8s::Client& client, FitQuestion question, std::uint32_t page_size,
                                    TimePoint deadline);

// "2 pods of node n1 would find no room elsewhere: shop/a (0/3 nodes …), …; 1 is not known: …"; empty when all fit.
std::string summary(const std::string& node, const std::vector<PodFit>& fits);
// "would find no room elsewhere: …", "would it find room elsewhere? not known: …": about one pod.
std::string clause(const PodFit& fit);
std::size_t count(const std::vector<PodFit>& fits, Fit fit);

}  // namespace haulout::placement
