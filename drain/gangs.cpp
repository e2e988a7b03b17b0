#include "drain/gangs.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "drain/pod_filter.hpp"

namespace haulout::drain {

std::string Gang::text() const {
  switch (kind) {
    case Kind::pod_group: return fmt::format("PodGroup {}/{}", ns, name);
    case Kind::job_set: return fmt::format("JobSet {}/{}", ns, name);
    case Kind::leader_worker_group: break;
  }
  return fmt::format("LeaderWorkerSet {}/{} group {}", ns, name, group);
}

std::optional<Gang> named_gang(const k8s::Pod& pod) {
  if (is_daemon_pod(pod)) return std::nullopt;
  if (auto name = k8s::value_at(pod.labels, job_set_label).value_or(""); !name.empty())
    return Gang{Gang::Kind::job_set, pod.ns, std::move(name), {}};
  auto name = k8s::value_at(pod.labels, leader_worker_set_label).value_or("");
  auto group = k8s::value_at(pod.labels, leader_worker_group_label).value_or("");
  if (!name.empty() && !group.empty())
    return Gang{Gang::Kind::leader_worker_group, pod.ns, std::move(name), std::move(group)};
  if (pod.pod_group.empty()) return std::nullopt;
  return Gang{Gang::Kind::pod_group, pod.ns, pod.pod_group, {}};
}

std::optional<Gang> gang_of(const k8s::Pod& pod) {
  return pod.finished() || pod.terminating() ? std::nullopt : named_gang(pod);
}

std::optional<std::uint32_t> size_of_gang(const k8s::Pod& pod) {
  const auto gang = named_gang(pod);
  if (!gang || gang->kind != Gang::Kind::leader_worker_group) return std::nullopt;
  const auto size =
      parse_number<std::uint32_t>(k8s::value_at(pod.annotations, leader_worker_size_annotation).value_or(""));
  return size && *size > 0 ? size : std::nullopt;
}

}  // namespace haulout::drain
