// Deletion of objects in the simulated cluster: immediate, or graceful for pods; finalizers delay the removal. Used by
// the API's DELETE, evictions, controllers and kubelets. No I/O.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/world.hpp"

namespace haulout::sim {

struct Deletion {
  Object object;      // last state of the object that was written; nullptr if the object did not exist
  bool gone = false;  // true if the object was removed from storage
};

// Deletes an object by the rules of the API. The grace period of a pod is `grace_seconds` (a negative value counts as
// 1) or, if that is unset, the pod's own. For unbound and finished pods it is 0. A request for a terminating pod can
// only shorten it. Other objects are removed immediately or, if they have finalizers, become terminating.
Deletion delete_gracefully(World& world, const Key& key, std::optional<std::int64_t> grace_seconds);

// Sets the condition DisruptionTarget of the pod, as an eviction does. Writes nothing if an eviction has already set
// it.
void mark_disruption_target(World& world, const Key& pod, const std::string& manager);

}  // namespace haulout::sim
