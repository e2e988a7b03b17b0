// The flags of all commands. They are made from tables of options: those of a drain (drain/option_table.hpp), of the
// agent (agent/config/option_table.hpp) and of the other commands (flags.cpp). The parser, the help, the completion
// scripts and the suggestions for misspelt flags use them. Pure.
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
  std::string help;
  // Parses the value of the flag and stores it in the settings. Returns an empty string, or an error message if the
  // value is invalid. A flag of `agent` is only recorded in Settings::agent_options, because its effect also depends on
  // the configuration file and the environment.
  std::function<std::string(Settings&, const std::string&)> apply;
  // Returns the value of the flag in these settings as text. For a flag of `agent`, returns its default.
  std::function<std::string(const Settings&)> show = [](const Settings&) { return std::string(); };
  bool without_effect = false;  // true for flags of kubectl that the program accepts and ignores

  Command command = Command::drain;  // the command that has the flag; only the shown default depends on it

  // Returns the default value for the help; empty: the help shows no default.
  std::string shown_default() const { return show(default_settings(command)); }
};

struct FlagGroup {
  std::string title;
  std::vector<Flag> flags;
};

// Returns the flags of `agent`, in the groups and the order of its table of options.
std::vector<FlagGroup> agent_flag_groups();
// Returns the flags of one command, without connection_flags().
std::vector<Flag> command_flags(Command command);
// Returns kubectl's flags for connection and logging. Every command that connects to the server has them, except
// `agent`.
std::vector<Flag> connection_flags();
// Returns all flags of the command: command_flags() and, except for `agent`, connection_flags().
std::vector<Flag> all_flags(Command command);

}  // namespace haulout::cli
