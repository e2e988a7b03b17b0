// Additions of generation 8 of the random worlds (world_generator.hpp): objects that no server validates (a claimRef
// without a namespace), pods that a person has deleted with a longer grace period than their own, and a proxy that
// ignores field selectors. Pure. They use a random source of their own, so that worlds of earlier generations do not
// change.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// Adds to `world.objects`, `world.incidents` and `world.faults`. All obstacles are resolved in time.
void add_oddities(GeneratedWorld& world, const GeneratorOptions& options);

}  // namespace haulout::sim
