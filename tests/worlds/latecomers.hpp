// Additions of generation 13 of the random worlds (world_generator.hpp): pods that arrive on the node during the drain,
// with labels that no other pod of the world has, and with a budget that was there before them. Some get these labels
// only later. Pure. They use a random source of their own, so that worlds of earlier generations do not change.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// Adds to `world.objects` and `world.incidents`. The budgets allow all evictions at `world.healed_after`.
void add_latecomers(GeneratedWorld& world);

}  // namespace haulout::sim
