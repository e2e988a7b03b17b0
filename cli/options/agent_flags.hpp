// The flags of `haulout agent`, made from the agent's table of options (option_table.hpp). Applying a flag only records
// it in Settings::agent_options, because its effect also depends on the configuration file and the environment. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/options/flags.hpp"

namespace haulout::cli {

struct FlagGroup {
  std::string title;
  std::vector<Flag> flags;
};

std::vector<FlagGroup> agent_flag_groups();
// Returns the flags of all groups of agent_flag_groups(), in the order of the agent's table of options.
std::vector<Flag> agent_flags();

}  // namespace haulout::cli
