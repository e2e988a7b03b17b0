// Parses argv into Settings, with the grammar of kubectl (pflag). Flags and node names may come in any order. A flag is
// written `--flag value`, `--flag=value`, `-l value`, `-l=value` or `-lvalue`; `--` ends the flags. If a flag is
// repeated, the last value applies, unless the flag collects values. A Boolean takes no separate value. Returns errors
// of the command line before any connection is made. Pure.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/options/flags.hpp"
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

// Rewrites arguments for the parser CLI11. CLI11 reads some spellings differently from kubectl's parser, pflag; after
// the rewriting it reads them as pflag does. A row below shows an argument, its rewritten form, and the reason. Pure.
//
//   -l=a=b            -l a=b               CLI11 would keep the "="
//   --pod-selector=   --pod-selector ""    CLI11 would take the next argument as the value
//   --force           --force true         for CLI11 a Boolean has a value, too; it never takes the next argument
//   --dry-run         --dry-run ""         CLI11 would take the next argument; the parser then refuses the empty value
//   -- x y            x y as `words`       CLI11 would end the command here and apply the rest to the program
//
// CLI11 only finds the command and the flags in the arguments: long and short names, "-lVALUE", flags before the
// command, and arguments that are neither flags nor values. It does not convert or check values and prints no help,
// because the rows of the option tables do both. The same rows also read HAULOUT_* variables and the configuration
// file, for which CLI11 would use formats of its own. The flags of `agent` are only recorded, because their effect
// depends on those sources, too.

struct Arguments {
  std::vector<std::string> args;   // the arguments for CLI11
  std::vector<std::string> words;  // the arguments that follow "--"; they are never flags
};

// Rewrites `args` for CLI11. `flags` holds the flags of all commands. A flag must have the same kind in every command
// that has it.
Arguments normalise_arguments(const std::vector<Flag>& flags, const std::vector<std::string>& args);

}  // namespace haulout::cli
