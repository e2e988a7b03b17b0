// Help texts: what a command does, examples, and its flags from the table. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/settings.hpp"

namespace haulout::cli {

// Nothing: the overview. `program` is how the user calls us: "haulout" or "kubectl haulout".
std::string help_text(std::optional<Command> command, std::string_view program);
std::string version_text();

// The commands in the order of the overview, without the hidden one.
struct CommandRow {
  Command command;
  std::string_view name;
  std::string_view summary;
};
const std::vector<CommandRow>& command_rows();

std::string_view to_string(Command command);
std::optional<Command> command_of(std::string_view word);
// What may be typed; "help", too.
std::vector<std::string> command_names();

}  // namespace haulout::cli
