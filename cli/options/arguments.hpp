// Rewrites arguments for the parser CLI11. CLI11 reads some spellings differently from kubectl's parser, pflag; after
// the rewriting it reads them as pflag does. A row below shows an argument, its rewritten form, and the reason. Pure.
//
//   -l=a=b            -l a=b               CLI11 would keep the "="
//   --pod-selector=   --pod-selector ""    CLI11 would take the next argument as the value
//   --force           --force true         for CLI11 a Boolean has a value, too; it never takes the next argument
//   --dry-run         --dry-run ""         CLI11 would take the next argument; the parser then refuses the empty value
//   -- x y            words x y            CLI11 would end the command here and read the rest as its parent's
//
// CLI11 only finds the command and the flags in the arguments: long and short names, "-lVALUE", flags before the
// command, and arguments that are neither flags nor values. It does not convert or check values and prints no help,
// because the rows of the option tables do both. The same rows also read HAULOUT_* variables and the configuration
// file, for which CLI11 would use formats of its own. The flags of `agent` are only recorded, because their effect
// depends on those sources, too.
#pragma once

#include <string>
#include <vector>

#include "cli/options/flags.hpp"

namespace haulout::cli {

struct Arguments {
  std::vector<std::string> args;   // the arguments for CLI11
  std::vector<std::string> words;  // the arguments that follow "--"; they are never flags
};

// Rewrites `args` for CLI11. `flags` holds the flags of all commands. A flag must have the same kind in every command
// that has it.
Arguments normalise_arguments(const std::vector<Flag>& flags, const std::vector<std::string>& args);

}  // namespace haulout::cli
