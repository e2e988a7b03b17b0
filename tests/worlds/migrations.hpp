// Additions of generation 8 of the random worlds (world_generator.hpp): pods behind budgets that never allow a
// disruption. An admission webhook takes the request to evict such a pod as the signal to migrate it, as KubeVirt and
// Strimzi do. The webhooks admit, deny, answer slowly, cannot be called for a while, or turn the eviction into a dry
// run. Pure. They use a random source of their own, so that worlds of earlier generations do not change.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// May add to every part of `world`. Each of these pods is deleted after a drain has requested its eviction.
void add_migrations(GeneratedWorld& world);

}  // namespace haulout::sim
