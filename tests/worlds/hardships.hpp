// What makes a generated world harder, from the second generation of worlds on: volumes that take their time to detach,
// namespaces that die, people who move pods, webhooks that deny or fail for a while. Pure; from a seed of its own, so
// that worlds of the first generation stay what they were. From the fourth on there are more volumes, of two drivers,
// and from the fifth on storage is slow to attach, and more pods
// come back to their volumes elsewhere; further seeds decide that.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// Adds to `world.objects` and `world.incidents`; everything that stands in the way heals, as told there.
void add_hardships(GeneratedWorld& world, const GeneratorOptions& options);

}  // namespace haulout::sim
