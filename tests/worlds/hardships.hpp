// Hardships of generated worlds, from the second generation on: volumes that detach slowly, namespaces that are
// deleted, people who move pods, webhooks that deny or fail for a while. Pure. They have their own seed, so that worlds
// of the first generation do not change. The fourth generation adds more volumes, of two drivers. In the fifth, storage
// attaches slowly, and more pods need their volumes on another node. Both additions have further seeds.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// Adds to `world.objects` and `world.incidents`. All obstacles are resolved in time, as world_generator.hpp promises.
void add_hardships(GeneratedWorld& world, const GeneratorOptions& options);

}  // namespace haulout::sim
