// Help texts: what a command does, examples, and its flags from the table. Pure.
#pragma once

#include <optional>
#include <string>

#include "agent/settings.hpp"

namespace haulout::agent {

// Nothing: the overview. `program` is how the user calls us: "haulout" or "kubectl haulout".
std::string help_text(std::optional<Command> command, std::string_view program);
std::string version_text();
// As the API server's audit log shows us.
std::string user_agent(Command command);

std::string_view to_string(Command command);
std::vector<std::string> command_names();

}  // namespace haulout::agent
