// What CLI11 does not read as pflag (and so kubectl) does, rewritten into what it reads. Pure.
//
//   -l=a=b            -l a=b               CLI11 would keep the "="
//   --pod-selector=   --pod-selector ""    CLI11 would take the next argument for the value
//   --force           --force true         Booleans are options like all others, and never take the next argument
//   --dry-run         --dry-run ""         never takes the next argument either; the empty value is then refused
//   -- x y            words x y            CLI11 ends a command there, and reads on in its parent
#pragma once

#include <string>
#include <vector>

#include "cli/options/flags.hpp"

namespace haulout::cli {

struct Arguments {
  std::vector<std::string> args;   // for CLI11
  std::vector<std::string> words;  // what stood behind "--"
};

// `flags`: all that may occur; a flag is of one kind in all commands.
Arguments normalise_arguments(const std::vector<Flag>& flags, const std::vector<std::string>& args);

}  // namespace haulout::cli
