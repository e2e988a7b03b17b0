// Which volume binds a pod to its node: one that exists there only. Found by the pod's claims, because a local volume
// has no VolumeAttachment. Reads only; what is gone binds nothing, any other failure is returned.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "k8s/client.hpp"

namespace haulout::drain {

// What a PersistentVolume names as its node.
std::string hostname_of(const k8s::Node& node);

// A clause with the way out; nothing: no volume of it does. `deadline`: of a request that is sent now. Borrows the
// client. Cancellable.
Task<std::optional<std::string>> local_volume_of(k8s::Client& client, k8s::Pod pod, std::string hostname,
                                                 std::function<TimePoint()> deadline);

}  // namespace haulout::drain
