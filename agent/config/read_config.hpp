// The configuration of the agent from all its sources: flags before HAULOUT_* variables before the file before the
// defaults. A higher source replaces a lower one whole, lists too. Every value is judged, even one that a higher source
// overrides; then what they mean together.
//
// An empty value of a text, a list or a command is the default again, whatever lower sources say; other options refuse
// it. Values that belong into a message are cut short, and never repeated where they may hold a password.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/config/given.hpp"
#include "agent/config/option.hpp"

namespace haulout::agent {

// The text is for exit code 2: one line per problem, each with place, thing, cause and way out. Pure.
std::variant<AgentConfig, std::string> read_config(const FlagValues& flags, const Variables& environment,
                                                   const std::optional<ConfigFile>& file);

// The same with the file that --config or HAULOUT_CONFIG names, which must be readable, or else with `default_file`
// where that exists. Reads one file; blocks for that long.
std::variant<AgentConfig, std::string> load_config(const FlagValues& flags, const Variables& environment,
                                                   std::string_view default_file = default_config_file);

// What the values mean together: options that need or exclude each other. Pure.
std::vector<std::string> contradictions(const AgentConfig& config);

}  // namespace haulout::agent
