// Reads the configuration of the agent from all its sources, in this order of precedence: flags, HAULOUT_* variables,
// the file, HAULOUT_DEFAULT_* variables, built-in defaults. The value of an option in one source replaces those of all
// lower sources, also for lists. Every value is checked, even one that a higher source overrides, and then the
// combination of the values.
//
// An empty value resets some options to their default, even if lower sources have a value: texts, lists, commands, and
// numbers or percentages without a default. Other options reject an empty value. Messages truncate long values, and
// omit values that may contain a password.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "agent/config/option_table.hpp"

namespace haulout::agent {

// The values of options from flags, environment or file, as text that has not been validated yet. Pure.

struct GivenValue {
  std::string text;
  std::string name;   // the option as the user wrote it: --settle, HAULOUT_SETTLE, settle
  std::string place;  // "/etc/haulout/config.yaml:3"; empty for flags and variables
};

// Values by the option's name. An empty vector is a value, too: it sets an option that may be repeated to an empty
// list.
using Given = std::map<std::string, std::vector<GivenValue>, std::less<>>;

// The values in one source, and what is wrong with them.
struct Reading {
  Given given;
  std::vector<std::string> problems;  // one sentence each: place, thing, cause, remedy
};

// Name and value of each flag, in the order of the command line. If a flag is given several times, the last value
// counts; for a list, all values count.
using FlagValues = std::vector<std::pair<std::string, std::string>>;
using Variables = std::map<std::string, std::string>;

struct ConfigFile {
  std::string path;  // path as it appears in messages
  std::string text;
};

Reading read_flags(const FlagValues& flags);
// Reads HAULOUT_* variables. Semicolons separate several values of an option that may be repeated.
Reading read_environment(const Variables& environment);
// Reads HAULOUT_DEFAULT_* variables. With these a package of the agent, like the shipped DaemonSet, replaces built-in
// defaults. The file overrides them.
Reading read_packaged_defaults(const Variables& environment);
// Reads YAML: one mapping from option to value, or to a list of values for an option that takes several. A null value
// counts as not given.
Reading read_file(const ConfigFile& file);

// Returns warnings about HAULOUT_* variables that look like a misspelt option, or like an option that exists only as a
// flag. Ignores variables that Kubernetes injects for a Service called haulout (HAULOUT_SERVICE_HOST,
// HAULOUT_PORT_443_TCP_ADDR, …).
std::vector<std::string> environment_warnings(const Variables& environment);

// Returns a message like "FILE:3: invalid value "x" for settle: why". Omits a value that may contain a password in a
// URL.
std::string invalid_value(const GivenValue& value, std::string_view why);

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
