// Hardships of the random worlds, from generation 2 on (world_generator.hpp): volumes that detach slowly, namespaces
// that are deleted, people who move pods, webhooks that deny or fail for a while. Generation 4 adds more volumes, of
// two drivers. In generation 5, storage attaches slowly, and more pods need their volumes on another node. Pure. Each
// addition uses a random source of its own, so that worlds of earlier generations do not change.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// Adds to `world.objects` and `world.incidents`. All obstacles are resolved in time, as world_generator.hpp promises.
void add_hardships(GeneratedWorld& world, const GeneratorOptions& options);

}  // namespace haulout::sim
