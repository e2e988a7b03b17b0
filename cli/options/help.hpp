// Builds the help texts of the commands from their descriptions, examples and flags (flags.hpp). Also builds the page
// docs/flags.md, and converts commands to their names and back. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/settings.hpp"

namespace haulout::cli {

// Returns the help of the command, or the overview of all commands if `command` is unset. `program` is how the user
// calls it: "haulout" or "kubectl haulout".
std::string help_text(std::optional<Command> command, std::string_view program);
// Returns the content of docs/flags.md: the flags of all commands except `agent`, whose flags docs/configuration.md
// lists.
std::string flags_page();

// A row of the overview of commands in the help. command_rows() returns the rows in the order of that overview, without
// the hidden command `__complete`.
struct CommandRow {
  Command command;
  std::string_view name;
  std::string_view summary;
};
const std::vector<CommandRow>& command_rows();

// Return the name of a command, and the command with this name (nullopt if there is none).
std::string_view to_string(Command command);
std::optional<Command> command_of(std::string_view word);
// Returns the names of all commands that the help lists, and "help".
std::vector<std::string> command_names();

}  // namespace haulout::cli
