// Reads the values of options from flags, environment or file, as text that has not been validated yet. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/config/option_table.hpp"

namespace haulout::agent {

struct GivenValue {
  std::string text;
  std::string name;   // the option as the user wrote it: --settle, HAULOUT_SETTLE, settle
  std::string place;  // "/etc/haulout/config.yaml:3"; empty for flags and variables
};

// Values by the option's name. An empty vector is a value, too: it sets an option that may be repeated to an empty
// list.
using Given = std::map<std::string, std::vector<GivenValue>, std::less<>>;

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

}  // namespace haulout::agent
