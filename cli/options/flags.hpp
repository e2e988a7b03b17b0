// The table of the flags of all commands. A row (`Flag`) holds the spelling of a flag, its help text, and the function
// that applies it. The parser, the help, the completion and the suggestions for misspelt flags all use this table.
// Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/options/settings.hpp"

namespace haulout::cli {

struct Flag {
  enum class Kind {
    boolean,  // --force, --force=false
    value,    // --timeout 5m, --timeout=5m
    // The value must follow a "=", as in --dry-run=client. Without it, the flag is an error; it never takes the next
    // argument.
    explicit_
  };
  std::string name;
  char letter = 0;  // letter of the short form, as in -l; 0: the flag has no short form
  Kind kind = Kind::value;
  std::string shown_default;  // the default value as the help shows it; empty: the help shows none
  std::string help;
  // Parses the value of the flag and stores it in the settings. Returns an empty string, or an error message if the
  // value is invalid.
  std::function<std::string(Settings&, const std::string&)> apply;
  bool without_effect = false;  // the program accepts the flag only because kubectl has it, and ignores it
};

// Returns the flags of one command, without connection_flags().
std::vector<Flag> command_flags(Command command);
// Returns kubectl's flags for connection and logging. Every command that connects to the server has them, except
// `agent`.
std::vector<Flag> connection_flags();
// Returns all flags that may follow the command: command_flags() and, except for `agent`, connection_flags().
std::vector<Flag> all_flags(Command command);

}  // namespace haulout::cli
