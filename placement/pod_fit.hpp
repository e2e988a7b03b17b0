// Whether a pod that leaves its node would fit elsewhere, as an answer. Plain data, and its words.
//
// Three answers, and "unknown" is never "fits".
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
  std::string node;                  // fits: where there is room for it, which need not be where it will go
  std::vector<std::string> plugins;  // does not fit: the scheduler's plugins that say no
  std::string message;  // does not fit: why, in the scheduler's words; unknown: what keeps it from being known
  bool operator==(const PodFit&) const = default;
};

// "2 pods of node n1 would find no room elsewhere: shop/a (0/3 nodes …), …; 1 is not known: …"; empty when all fit.
std::string summary(const std::string& node, const std::vector<PodFit>& fits);
// "would find no room elsewhere: …", "would it find room elsewhere? not known: …": about one pod.
std::string clause(const PodFit& fit);
std::size_t count(const std::vector<PodFit>& fits, Fit fit);

}  // namespace haulout::placement
