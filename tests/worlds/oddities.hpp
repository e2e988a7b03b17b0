// What the eighth generation of worlds has besides: objects that no server checks (a claimRef without a namespace),
// pods that somebody has deleted with a longer grace period than theirs, and a proxy that ignores field selectors.
// Pure; from a seed of its own, so that older worlds stay what they were.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// Adds to `world.objects`, `world.incidents` and `world.faults`; what stands in the way heals.
void add_oddities(GeneratedWorld& world, const GeneratorOptions& options);

}  // namespace haulout::sim
