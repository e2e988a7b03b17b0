// The flags of `haulout rehearse`. Pure.
#pragma once

#include <vector>

#include "cli/options/flags.hpp"

namespace haulout::cli {

// Returns the flags of a drain, without those that make no sense in a rehearsal, and the flags of rehearse itself. Some
// of the latter apply only to fleets (--all).
std::vector<Flag> rehearse_flags(std::vector<Flag> drain_flags);

}  // namespace haulout::cli
