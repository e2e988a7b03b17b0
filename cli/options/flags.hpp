// The flags of all commands, made from tables of options: those of a drain (drain/option_table.hpp), those of the agent
// (agent/config/option_table.hpp) and those of the other commands (flags.cpp). The parser, the help, the completion and
// the suggestions for misspelt flags all use these flags. Pure.
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
  // Returns the value that the flag has in these settings; of a flag of `agent`, its default.
  std::function<std::string(const Settings&)> show = [](const Settings&) { return std::string(); };
  bool without_effect = false;  // the program accepts the flag only because kubectl has it, and ignores it

  // The default value as the help shows it; empty: the help shows none.
  std::string shown_default() const { return show(Settings()); }
};

struct FlagGroup {
  std::string title;
  std::vector<Flag> flags;
};

// The flags of `agent`, in the groups and in the order of its table of options.
std::vector<FlagGroup> agent_flag_groups();
// Returns the flags of one command, without connection_flags().
std::vector<Flag> command_flags(Command command);
// Returns kubectl's flags for connection and logging. Every command that connects to the server has them, except
// `agent`.
std::vector<Flag> connection_flags();
// Returns all flags that may follow the command: command_flags() and, except for `agent`, connection_flags().
std::vector<Flag> all_flags(Command command);

}  // namespace haulout::cli
