// The options of a generated drain. Options that a later generation of the random worlds (world_generator.hpp) adds
// come from a random source of their own. So all other options are the same as in the generation before.
#pragma once

#include <string>

#include "drain/options.hpp"
#include "retry/rng.hpp"
#include "tests/worlds/world_generator.hpp"

namespace haulout::scenario {

// Returns the options of one drain. Draws those of the first generation from `rng`, and those of later generations from
// the world's seed.
drain::Options some_options(Rng& rng, const sim::GeneratedWorld& world, unsigned generation);
// Returns the names of the options of generation 6 or later that are switched on, each with a space before it.
std::string richer_setting(const drain::Options& options);

}  // namespace haulout::scenario
