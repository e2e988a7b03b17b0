#include "drain/gangs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "drain/pod_filter.hpp"

namespace haulout::drain {

namespace {

// Returns nullptr if the pod has no such label. A search in the map would make a string of the key first, and a drain
// looks for these labels in every pod after every event.
const std::string* label_of(const k8s::Pod& pod, std::string_view key) {
  const auto found = std::ranges::find_if(pod.labels, [&](const auto& label) { return label.first == key; });
  return found == pod.labels.end() || found->second.empty() ? nullptr : &found->second;
}

}  // namespace

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
  if (const std::string* name = label_of(pod, job_set_label)) return Gang{Gang::Kind::job_set, pod.ns, *name, {}};
  const std::string* name = label_of(pod, leader_worker_set_label);
  const std::string* group = name ? label_of(pod, leader_worker_group_label) : nullptr;
  if (group) return Gang{Gang::Kind::leader_worker_group, pod.ns, *name, *group};
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
