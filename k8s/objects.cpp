#include "k8s/objects.hpp"

#include <algorithm>
#include <array>

namespace haulout::k8s {

bool kept_annotation(std::string_view key) {
  static constexpr std::array<std::string_view, 6> kept = {
      "kubernetes.io/config.mirror", "haulout.dev/drain-order",     "haulout.dev/max-unavailable",
      "haulout.dev/single-replica",  "karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict",
  };
  return std::find(kept.begin(), kept.end(), key) != kept.end();
}

bool kept_condition(std::string_view type) {
  return type.starts_with("Haulout");
}

}  // namespace haulout::k8s
