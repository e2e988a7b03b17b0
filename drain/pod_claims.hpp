// The claims of the pods of a node: which claims they use, to which claim a volume belongs, and whether a volume binds
// a pod to its node. Pure, except for local_volume_of(), which reads claims and volumes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "drain/pipeline.hpp"
#include "k8s/client.hpp"
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
// Bound or has no phase.
bool may_be_of_an_earlier_claim(const k8s::PersistentVolume& volume);
// Returns true if the volume belongs to `claim`. `claim` has the name in the volume's claimRef, but the claimRef may
// mean a deleted claim of the same name. If `claim` is bound, its binding decides, because pods mount the volume that
// it names. If it is not bound, no running pod uses it, and the UIDs decide. If a UID is missing, returns true, so that
// the drain waits for the volume.
bool is_volume_of(const k8s::PersistentVolume& volume, const k8s::PersistentVolumeClaim& claim);

// Returns the name by which PersistentVolumes refer to the node: its label kubernetes.io/hostname, or else its name.
std::string hostname_of(const k8s::Node& node);

// Returns true if the volume exists only on the node with this hostname_of().
bool is_only_on(const k8s::PersistentVolume& volume, const std::string& hostname);

// Finds the volume that binds a pod to its node because it exists on that node only. Reads the pod's claims and their
// volumes, because a local volume has no VolumeAttachment. A claim or volume that does not exist is ignored. Fails with
// any other error of a request.
// Returns a clause that names the volume and the remedy, or nullopt if no volume binds the pod to the node. `deadline`
// returns the deadline of a request that is sent now. Borrows `client`. Cancellable.
Task<std::optional<std::string>> local_volume_of(k8s::Client& client, k8s::Pod pod, std::string hostname,
                                                 std::function<TimePoint()> deadline);

}  // namespace haulout::drain
