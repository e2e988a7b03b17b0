// Deletion of objects in the simulated cluster: at once, or gracefully as for pods; finalizers delay the removal. The
// API's DELETE, evictions, controllers and kubelets use it. No I/O.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/world.hpp"

namespace haulout::sim {

struct Deletion {
  Object object;      // last state of the object that was written; null if there was no such object
  bool gone = false;  // true if the object was removed from storage
};

// Deletes an object by the rules of the API. Without `grace_seconds` a pod gets its own grace period; a negative value
// counts as 1. Unbound and finished pods get 0. The grace period of a terminating pod can only become shorter. Other
// objects are removed at once, or wait for their finalizers.
Deletion delete_gracefully(World& world, const Key& key, std::optional<std::int64_t> grace_seconds);

// Sets the condition DisruptionTarget of the pod, as an eviction does. Writes nothing if an eviction has already set
// it.
void mark_disruption_target(World& world, const Key& pod, const std::string& manager);

}  // namespace haulout::sim
