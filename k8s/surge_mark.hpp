// The mark of a surged pod: a pod of a Deployment from which a drain has taken the label pod-template-hash, so that the
// ReplicaSet creates a replacement before the pod is evicted. The mark is an annotation, and is written and removed in
// the same patches as the label. It has what is needed to give the pod back after a crash. Pure.
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
  bool operator==(const SurgeMark&) const = default;
};

// Returns the value of the annotation.
std::string encode_surge_mark(const SurgeMark& mark);
// Returns nullopt if the text is not a mark from which the pod can be given back: hash, owner and ownerUid must not be
// empty.
std::optional<SurgeMark> parse_surge_mark(std::string_view text);

// Return merge patches that the server applies only to this pod in the state that was read (uid and resourceVersion).
// surge_patch() takes the label off and sets the mark. give_back_patch() does the reverse; the pod must have a mark.
std::string surge_patch(const Pod& pod, const SurgeMark& mark);
std::string give_back_patch(const Pod& pod);

}  // namespace haulout::k8s
