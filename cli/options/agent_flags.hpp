// The flags of `haulout agent`, made from the table of options. They are only noted (Settings::agent_options): what
// they mean depends on the file and the environment, too. Pure.
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
// All of them in their order.
std::vector<Flag> agent_flags();

}  // namespace haulout::cli
