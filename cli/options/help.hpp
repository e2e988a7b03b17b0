// Builds the help texts: what a command does, examples, and its flags from the table (flags.hpp). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/settings.hpp"

namespace haulout::cli {

// Without a command, returns the overview. `program` is how the user calls it: "haulout" or "kubectl haulout".
std::string help_text(std::optional<Command> command, std::string_view program);
std::string version_text();

// The commands in the order of the overview, without the hidden one (`__complete`).
struct CommandRow {
  Command command;
  std::string_view name;
  std::string_view summary;
};
const std::vector<CommandRow>& command_rows();

std::string_view to_string(Command command);
std::optional<Command> command_of(std::string_view word);
// The names of all commands that the help lists, and "help".
std::vector<std::string> command_names();

}  // namespace haulout::cli
