// Additions of the eighth generation of worlds: objects that no server validates (a claimRef without a namespace), pods
// that a person has deleted with a longer grace period than their own, and a proxy that ignores field selectors. Pure.
// They have their own seed, so that older worlds do not change.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// Adds to `world.objects`, `world.incidents` and `world.faults`. All obstacles are resolved in time.
void add_oddities(GeneratedWorld& world, const GeneratorOptions& options);

}  // namespace haulout::sim
