#include "drain/local_volumes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "k8s/status.hpp"

namespace haulout::drain {

namespace {

constexpr const char* hostname_label = "kubernetes.io/hostname";

}  // namespace

std::string hostname_of(const k8s::Node& node) {
  const auto label = node.labels.find(hostname_label);
  return label == node.labels.end() ? node.name : label->second;
}

Task<std::optional<std::string>> local_volume_of(k8s::Client& client, k8s::Pod pod, std::string hostname,
                                                 std::function<TimePoint()> deadline) {
  for (const std::string& name : pod.claims) {
    const auto claim = co_await client.get<k8s::PersistentVolumeClaim>(pod.ns, name, deadline());
    if (!claim && !k8s::is_gone(claim.error())) co_return claim.error();
    if (!claim || claim->volume_name.empty()) continue;
    const auto volume = co_await client.get<k8s::PersistentVolume>(claim->volume_name, deadline());
    if (!volume && !k8s::is_gone(volume.error())) co_return volume.error();
    if (!volume || volume->hostnames.empty()) continue;
    if (std::any_of(volume->hostnames.begin(), volume->hostnames.end(),
                    [&](const std::string& one) { return one != hostname; }))
      continue;
    co_return std::optional(fmt::format(
        "its volume {} (claim {}/{}) exists only on this node: after the eviction, its replacement stays Pending until "
        "the node is uncordoned. Let its owner move the data first, or accept the outage during the maintenance",
        volume->name, pod.ns, name));
  }
  co_return std::optional<std::string>();
}

}  // namespace haulout::drain
