// The answer whether a pod that leaves its node would fit elsewhere, and its text. Plain data. Pure.
//
// There are three answers. "unknown" never counts as "fits".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace haulout::placement {

enum class Fit { fits, does_not_fit, unknown };
std::string_view to_string(Fit fit);  // "fits", "does-not-fit", "unknown"

struct PodFit {
  std::string pod;  // namespace/name
  std::string uid;
  Fit fit = Fit::unknown;
  std::string node;                  // if it fits: a node with capacity for it; the pod may go to another one
  std::vector<std::string> plugins;  // if it does not fit: the scheduler's plugins that refuse it
  std::string message;               // if it does not fit: the reason as kube-scheduler words it; if unknown: why
  bool operator==(const PodFit&) const = default;
};

// For example "2 pods of node n1 would find no room elsewhere: shop/a (0/3 nodes …), …; whether 1 pod of node n1 would
// find room elsewhere is not known: …". Empty if all pods fit.
std::string summary(const std::string& node, const std::vector<PodFit>& fits);
// The same for one pod: "would find no room elsewhere: …", "may find no room elsewhere, which is not known: …".
std::string clause(const PodFit& fit);
std::size_t count(const std::vector<PodFit>& fits, Fit fit);

}  // namespace haulout::placement
