// The flags of `haulout rehearse`.
#pragma once

#include <vector>

#include "cli/options/flags.hpp"

namespace haulout::cli {

// Those of a drain, but for what has no meaning without a server; and its own, of which some are about fleets alone.
std::vector<Flag> rehearse_flags(std::vector<Flag> drain_flags);

}  // namespace haulout::cli
