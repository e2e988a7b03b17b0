// The table of flags: one row says how a flag is spelt, explained and applied. Parsing, help and suggestions read it.
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
    explicit_  // --dry-run=client only: bare it is a mistake, and the next argument is never its value
  };
  std::string name;
  char letter = 0;  // 0: none
  Kind kind = Kind::value;
  std::string shown_default;  // as help shows it; empty: not shown
  std::string help;
  // Returns what is wrong with the value, or nothing when it has been applied.
  std::function<std::string(Settings&, const std::string&)> apply;
  bool without_effect = false;  // accepted because kubectl takes it
};

// The flags of one command without those of the connection.
std::vector<Flag> command_flags(Command command);
// kubectl's connection flags and logging: every command that talks to the server has them.
std::vector<Flag> connection_flags();
// Both, as they may be given behind the command.
std::vector<Flag> all_flags(Command command);

}  // namespace haulout::cli
