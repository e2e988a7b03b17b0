// The options of a generated drain. What a later generation adds comes from a source of its own: all else is as in the
// one before.
#pragma once

#include <string>

#include "drain/options.hpp"
#include "retry/rng.hpp"
#include "tests/worlds/world_generator.hpp"

namespace haulout::scenario {

// The first ones are drawn from `rng`.
drain::Options some_options(Rng& rng, const sim::GeneratedWorld& world, unsigned generation);
// Those of the sixth generation that are switched on, each with a space before it.
std::string richer_setting(const drain::Options& options);

}  // namespace haulout::scenario
