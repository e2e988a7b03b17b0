// Recognizes gangs: groups of pods that run only as a whole, such as all pods of a training run on many machines. If
// one member is evicted, the whole group stops or starts again. Pure.
//
// A pod tells its gang itself, so no other object is read. A drain knows only the members on its own node. Ways to
// tell, of which the first one counts:
//   1. the label of JobSet (jobset.sigs.k8s.io): all pods of a JobSet are one gang
//   2. the labels of LeaderWorkerSet (leaderworkerset.sigs.k8s.io): each group of a leader and its workers is a gang
//   3. the field spec.schedulingGroup.podGroupName (Kubernetes 1.36 and 1.37, both behind the gate GenericWorkload):
//      the PodGroup of that name in the pod's namespace. It comes last because a JobSet may have a PodGroup for each of
//      its Jobs, and stops as a whole nevertheless. Whether the PodGroup lets its pods run one by one is not known.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "k8s/objects.hpp"

namespace haulout::drain {

inline constexpr std::string_view job_set_label = "jobset.sigs.k8s.io/jobset-name";
inline constexpr std::string_view leader_worker_set_label = "leaderworkerset.sigs.k8s.io/name";
inline constexpr std::string_view leader_worker_group_label = "leaderworkerset.sigs.k8s.io/group-index";
// How many pods each group of the LeaderWorkerSet has.
inline constexpr std::string_view leader_worker_size_annotation = "leaderworkerset.sigs.k8s.io/size";

struct Gang {
  enum class Kind { job_set, leader_worker_group, pod_group };
  Kind kind = Kind::pod_group;
  std::string ns;
  std::string name;   // of the PodGroup, the JobSet or the LeaderWorkerSet
  std::string group;  // index of the group; only for leader_worker_group
  auto operator<=>(const Gang&) const = default;

  // "PodGroup ml/train", "JobSet ml/train", "LeaderWorkerSet ml/serve group 3"
  std::string text() const;
};

// Returns the gang that the pod names, whatever the state of the pod is; nullopt if it names none. A pod of a DaemonSet
// is in no gang: it runs on each node by itself.
std::optional<Gang> named_gang(const k8s::Pod& pod);
// Returns the gang of which the pod is a member. A pod that has finished or is terminating is no member any more: its
// eviction stops nothing.
std::optional<Gang> gang_of(const k8s::Pod& pod);
// Returns how many pods the pod's gang has on all nodes; nullopt if the pod does not tell. Only pods of a
// LeaderWorkerSet do.
std::optional<std::uint32_t> size_of_gang(const k8s::Pod& pod);

}  // namespace haulout::drain
