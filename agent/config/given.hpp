// What was given for the options, by flags, environment or file, as text that has not been judged yet. Pure.
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
  std::string name;   // as its author wrote it: --settle, HAULOUT_SETTLE, settle
  std::string place;  // "/etc/haulout/config.yaml:3", or empty
};

// By the option's name. An empty list was given, too: it empties an option that may be repeated.
using Given = std::map<std::string, std::vector<GivenValue>, std::less<>>;

struct Reading {
  Given given;
  std::vector<std::string> problems;  // one sentence each: place, thing, cause, way out
};

// name and value, in the order of the command line; the last one wins.
using FlagValues = std::vector<std::pair<std::string, std::string>>;
using Variables = std::map<std::string, std::string>;

struct ConfigFile {
  std::string path;  // as messages name it
  std::string text;
};

Reading read_flags(const FlagValues& flags);
// HAULOUT_*; several values of an option that may be repeated are separated by semicolons.
Reading read_environment(const Variables& environment);
// HAULOUT_DEFAULT_*: what whoever packs the agent gives instead of the defaults; the file comes before them.
Reading read_packaged_defaults(const Variables& environment);
// YAML: one mapping from option to value, or to a list where an option may be repeated; null is as not given.
Reading read_file(const ConfigFile& file);

// HAULOUT_* variables that look like an option misspelt, and those that cannot be given this way. What Kubernetes
// injects for a Service called haulout (HAULOUT_SERVICE_HOST, HAULOUT_PORT_443_TCP_ADDR, …) is passed over.
std::vector<std::string> environment_warnings(const Variables& environment);

// "FILE:3: invalid value "x" for settle: why". Passwords in URLs are not repeated.
std::string invalid_value(const GivenValue& value, std::string_view why);

}  // namespace haulout::agent
