// From argv to Settings, with the grammar of kubectl (pflag): flags and node names in any order, `--flag value`,
// `--flag=value`, `-l value`, `-l=value`, `-lvalue`, `--` ends the flags, the last of a repeated flag wins, a Boolean
// takes no separate value. Pure: everything that is wrong with the usage is found here, before any connection.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/options/settings.hpp"

namespace haulout::cli {

// The program has nothing to do but to say this.
struct Immediate {
  int exit_code = 0;
  std::string out;  // for stdout
  std::string err;  // for stderr
};

// How the user calls us, from argv[0]: "haulout", or "kubectl haulout" when we are a kubectl plugin.
std::string program_name(std::string_view argv0);

// `program` is argv[0].
std::variant<Settings, Immediate> parse_command_line(std::string_view program, const std::vector<std::string>& args);

}  // namespace haulout::cli
