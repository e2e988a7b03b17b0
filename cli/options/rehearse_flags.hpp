// The flags of `haulout rehearse`, which simulates drains and updates of fleets. Pure.
#pragma once

#include <vector>

#include "cli/options/flags.hpp"

namespace haulout::cli {

// Returns all flags of `rehearse`: those of `drain_flags` that make sense in a rehearsal, and its own. Some of its own
// flags apply only with --all, which rehearses the update of a fleet.
std::vector<Flag> rehearse_flags(std::vector<Flag> drain_flags);

}  // namespace haulout::cli
