#include "k8s/objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "http/hmac.hpp"

namespace haulout::k8s {

bool kept_annotation(std::string_view key) {
  static constexpr std::array<std::string_view, 7> kept = {
      "kubernetes.io/config.mirror",    "haulout.dev/drain-order",     "haulout.dev/max-unavailable",
      "haulout.dev/single-replica",     "karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict",
      "kubevirt.io/evacuationNodeName",
  };
  return std::find(kept.begin(), kept.end(), key) != kept.end();
}

bool kept_condition(std::string_view type) {
  return type.starts_with("Haulout");
}

std::string attachment_name(std::string_view unique_name, std::string_view node) {
  constexpr std::string_view prefix = "kubernetes.io/csi/";
  const auto separator = unique_name.find('^');
  if (!unique_name.starts_with(prefix) || separator == unique_name.npos) return {};
  const auto driver = unique_name.substr(prefix.size(), separator - prefix.size());
  std::string name = "csi-";
  for (const auto byte : http::sha256(fmt::format("{}{}{}", unique_name.substr(separator + 1), driver, node)))
    name += fmt::format("{:02x}", byte);
  return name;
}

}  // namespace haulout::k8s
