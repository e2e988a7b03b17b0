// The table of flags. A row holds the spelling of a flag, its help text, and the function that applies it. The parser,
// the help, the completion and the suggestions for misspelt flags all use this table. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/options/settings.hpp"

namespace haulout::cli {

struct Flag {
  enum class Kind {
    boolean,   // --force, --force=false
    value,     // --timeout 5m, --timeout=5m
    explicit_  // only --dry-run=client: without "=" it is an error, and never takes the next argument
  };
  std::string name;
  char letter = 0;  // 0: the flag has no short form
  Kind kind = Kind::value;
  std::string shown_default;  // the default as the help shows it; empty: not shown
  std::string help;
  // Applies the value. Returns an empty string, or an error message if the value is invalid.
  std::function<std::string(Settings&, const std::string&)> apply;
  bool without_effect = false;  // accepted only because kubectl has this flag
};

// The flags of one command, without connection_flags().
std::vector<Flag> command_flags(Command command);
// kubectl's flags for connection and logging. Every command that connects to the server has them, except `agent`.
std::vector<Flag> connection_flags();
// All flags that may follow the command: command_flags() and, except for `agent`, connection_flags().
std::vector<Flag> all_flags(Command command);

}  // namespace haulout::cli
