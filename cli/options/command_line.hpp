// Parses argv into Settings, with the grammar of kubectl (pflag). Flags and node names may come in any order. A flag is
// written `--flag value`, `--flag=value`, `-l value`, `-l=value` or `-lvalue`; `--` ends the flags. If a flag is
// repeated, the last value applies, unless the flag collects values. A Boolean takes no separate value. Returns errors
// of the command line before any connection is made. Pure.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/options/settings.hpp"

namespace haulout::cli {

// What the program prints before it exits without running a command: help, the version, or a usage error.
struct Immediate {
  int exit_code = 0;
  std::string out;  // text for stdout
  std::string err;  // text for stderr
};

// Returns how the user calls the program, derived from argv[0]: "kubectl haulout" if it runs as a kubectl plugin, else
// "haulout".
std::string program_name(std::string_view argv0);

// Parses the command line. `program` is argv[0]; `args` are the arguments after it. Returns the settings of the command
// to run, or an Immediate for help, version and usage errors.
std::variant<Settings, Immediate> parse_command_line(std::string_view program, const std::vector<std::string>& args);

}  // namespace haulout::cli
