// Reads the configuration of the agent from all its sources, in this order of precedence: flags, HAULOUT_* variables,
// the file, HAULOUT_DEFAULT_* variables, built-in defaults. The value of an option in one source replaces those of all
// lower sources, also for lists. Every value is checked, even one that a higher source overrides, and then the
// combination of the values.
//
// An empty value of a text, a list or a command resets the option to its default, even if lower sources have a value.
// Other options reject an empty value. Messages truncate long values, and omit values that may contain a password.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "agent/config/given.hpp"

namespace haulout::agent {

// Returns the configuration, or an error message: one line per problem, each with place, thing, cause and remedy. The
// command then exits with code 2. Pure.
std::variant<AgentConfig, std::string> read_config(const FlagValues& flags, const Variables& environment,
                                                   const std::optional<ConfigFile>& file);

// Like read_config(), with the file that --config or HAULOUT_CONFIG names, which must be readable. If neither names a
// file, uses `default_file` if it exists. Blocks while it reads the file.
std::variant<AgentConfig, std::string> load_config(const FlagValues& flags, const Variables& environment,
                                                   std::string_view default_file = default_config_file);

// Returns the problems of options that need or exclude each other, one sentence each. Pure.
std::vector<std::string> contradictions(const AgentConfig& config);

}  // namespace haulout::agent
