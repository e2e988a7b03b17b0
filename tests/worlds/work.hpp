// Addition of generation 9 of the random worlds (world_generator.hpp): pods of Jobs on the node, which finish some time
// after the start. Some have the drain label of Cluster API. Pure. It uses a random source of its own, so that worlds
// of earlier generations do not change.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// Adds to `world.objects` and `world.incidents`. All work has ended at `world.healed_after`.
void add_work(GeneratedWorld& world);

}  // namespace haulout::sim
