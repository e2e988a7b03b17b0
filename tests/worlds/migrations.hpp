// What the eighth generation of worlds has besides: pods behind budgets that never open, which go because an admission
// webhook takes the request to evict them as its sign, as KubeVirt and Strimzi have it. The webhooks admit, deny, take
// their time, cannot be called for a while, or turn the eviction into a dry run. Pure; from a seed of its own, so that
// older worlds stay what they were.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// Adds to all of `world`: a drain that asks for each of these pods sees it go.
void add_migrations(GeneratedWorld& world);

}  // namespace haulout::sim
