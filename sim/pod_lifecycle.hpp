// How objects are deleted: at once, or gracefully as pods are, with finalizers holding them. Used by the API's DELETE,
// by evictions, by controllers and kubelets alike.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/world.hpp"

namespace haulout::sim {

struct Deletion {
  Object object;      // the last state written; null if there was no such object
  bool gone = false;  // removed from storage
};

// With the rules of the API: absent grace is the pod's own, negative is 1, unbound and finished pods get 0, a pod that
// is already terminating may only be shortened. Objects other than pods are removed, or wait for their finalizers.
Deletion delete_gracefully(World& world, const Key& key, std::optional<std::int64_t> grace_seconds);

// Adds condition DisruptionTarget as an eviction does; no write if it is there.
void mark_disruption_target(World& world, const Key& pod, const std::string& manager);

}  // namespace haulout::sim
