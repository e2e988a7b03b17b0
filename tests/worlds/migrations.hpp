// Additions of generation 8 of the random worlds (world_generator.hpp): pods behind budgets that never allow a
// disruption. An admission webhook takes the request to evict such a pod as the signal to migrate it, as KubeVirt and
// Strimzi do. The webhooks admit, deny, answer slowly, cannot be called for a while, or turn the eviction into a dry
// run; pods of the last kind have no budget. Pure. The additions use a random source of their own, so that worlds of
// earlier generations do not change.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// May add objects, incidents and migrations to `world`, and raises `healed_after` and `migrations_take` accordingly.
// Each pod that it adds is deleted some time after an eviction request of the drain has reached its webhook.
void add_migrations(GeneratedWorld& world);

}  // namespace haulout::sim
