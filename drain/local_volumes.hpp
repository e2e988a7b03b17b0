// Finds the volume that binds a pod to its node because it exists on that node only. Reads the pod's claims and their
// volumes, because a local volume has no VolumeAttachment. A claim or volume that does not exist is ignored. Fails with
// any other error of a request.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "k8s/client.hpp"

namespace haulout::drain {

// Returns the name by which PersistentVolumes refer to the node: its label kubernetes.io/hostname, or else its name.
std::string hostname_of(const k8s::Node& node);

// Returns a clause that names the volume and the remedy, or nullopt if no volume binds the pod to the node. `deadline`
// returns the deadline of a request that is sent now. Borrows `client`. Cancellable.
Task<std::optional<std::string>> local_volume_of(k8s::Client& client, k8s::Pod pod, std::string hostname,
                                                 std::function<TimePoint()> deadline);

}  // namespace haulout::drain
