// Additions of generation 11 of the random worlds (world_generator.hpp): gangs, which are groups of pods that run only
// as a whole. They belong to a PodGroup, a JobSet or a LeaderWorkerSet, or to two of them, and have members on the node
// to drain and on others. Some have a budget, a priority, an order, an emptyDir volume, or members that have finished
// before or are terminating from an earlier start. Each member finishes some time after the start. People delete some
// members, and a member may arrive late. Pure. They use a random source of their own, so that worlds of earlier
// generations do not change.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// Adds to `world.objects` and `world.incidents`. All members have finished at `world.healed_after`.
void add_gangs(GeneratedWorld& world, const GeneratorOptions& options);

}  // namespace haulout::sim
