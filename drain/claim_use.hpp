// Which claims the pods of a node use, and to which claim a volume belongs. Pure.
#pragma once

#include <map>
#include <set>
#include <string>

#include "drain/pipeline.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

// The claims that the pods of the node use, as "namespace/name".
struct ClaimUse {
  std::set<std::string> staying{};  // claims of pods that stay on the node
  std::set<std::string> leaving{};  // claims of pods that must leave and still exist
  std::set<std::string> left{};     // claims of pods that were deleted, or that stay but have finished
  // Claims of pods that must leave or were deleted, if a replacement pod will use the claim again.
  std::set<std::string> coming_back{};
};
ClaimUse claim_use(const std::map<std::string, TrackedPod>& pods);
// Returns true if a pod that must leave, or was deleted, has a claim.
bool any_claim_leaves(const std::map<std::string, TrackedPod>& pods);

// Returns true if the claim in the volume's claimRef may have been deleted and created again under the same name. The
// caller should then read the claim that has this name now, and call is_volume_of(). Returns false for a volume that is
// Bound.
bool may_be_of_an_earlier_claim(const k8s::PersistentVolume& volume);
// Returns true if the volume belongs to `claim`. `claim` has the name in the volume's claimRef, but the claimRef may
// mean a deleted claim of the same name. If `claim` is bound, its binding decides, because pods mount the volume that
// it names. If it is not bound, no running pod uses it, and the UIDs decide. If a UID is missing, returns true, so that
// the drain waits for the volume.
bool is_volume_of(const k8s::PersistentVolume& volume, const k8s::PersistentVolumeClaim& claim);

}  // namespace haulout::drain
