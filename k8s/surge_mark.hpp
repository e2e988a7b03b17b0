// The mark of a surged pod: a pod of a Deployment that a drain replaces before it evicts it. The drain takes the label
// pod-template-hash off the pod, so that the ReplicaSet lets the pod go and creates a replacement. The mark is an
// annotation that the same patch sets. It names the ReplicaSet, so that the pod can be given back after a crash, and so
// that the pod counts as one of its replicas meanwhile. It also names the Deployment, because a rollout may delete the
// ReplicaSet meanwhile. Pure.
//
// Giving a pod back takes two patches: the first one restores the label, the second one removes the mark when the
// ReplicaSet has adopted the pod. So at each moment the pod has a controller or a mark.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "retry/clock.hpp"

namespace haulout::k8s {

struct Pod;

// The label by which a Deployment's ReplicaSets select their pods (the API's well-known label).
inline constexpr std::string_view template_hash_label = "pod-template-hash";
inline constexpr std::string_view surge_mark_annotation = "haulout.dev/surged";

struct SurgeMark {
  std::string run;    // which run of a drain
  std::string by;     // who drains
  WallTime at{};      // when the label was taken off
  std::string node;   // the node that is being drained
  std::string hash;   // the value of the label
  std::string owner;  // name of the ReplicaSet
  std::string owner_uid;
  // Number of Ready pods of the Deployment just before that, this pod included.
  std::int64_t ready = 0;
  // Name and UID of the Deployment above the ReplicaSet. Empty in a mark of an older build.
  std::string deployment{};
  std::string deployment_uid{};
  bool operator==(const SurgeMark&) const = default;
};

// Returns the value of the annotation.
std::string encode_surge_mark(const SurgeMark& mark);
// Returns nullopt if the text is not a mark from which the pod can be given back: `hash` must be the value of a label,
// and node, owner and ownerUid must not be empty.
std::optional<SurgeMark> parse_surge_mark(std::string_view text);

// Return merge patches that the server applies only to this pod in the state that was read (uid and resourceVersion).
// surge_patch() takes the label off and sets the mark. relabel_patch() restores the label; the pod must have a mark.
// unmark_patch() removes the mark.
std::string surge_patch(const Pod& pod, const SurgeMark& mark);
std::string relabel_patch(const Pod& pod);
std::string unmark_patch(const Pod& pod);

}  // namespace haulout::k8s
