// Additions of generation 12 of the random worlds (world_generator.hpp): pods that have eviction responders (KEP-4563),
// some of them behind budgets that allow no disruption for a while. The responders move their pod, decline, stop, or
// never answer (sim/eviction_requests.hpp). The API server serves EvictionRequests or not, with or without a
// controller, and people delete requests. Pure. The additions use a random source of their own, so that worlds of
// earlier generations do not change.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// May add objects and incidents to `world`, and raises `healed_after` and `responders_take` accordingly.
void add_responders(GeneratedWorld& world);

}  // namespace haulout::sim
