// The answer whether a pod that must leave its node would fit on another node, and its text for messages. Plain data.
// Pure.
//
// The answers are "fits", "does not fit" and "unknown". "unknown" never counts as "fits".
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

// Returns a text about the pods that do not fit and about those whose fit is unknown, with their number, the names of
// the first five, and the reasons. Empty if all pods fit.
std::string summary(const std::string& node, const std::vector<PodFit>& fits);
// Returns the answer for one pod as a clause whose subject is the pod, with the reason or the node.
std::string clause(const PodFit& fit);
std::size_t count(const std::vector<PodFit>& fits, Fit fit);

}  // namespace haulout::placement
