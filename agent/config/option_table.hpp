// The table of the agent's options. A row has the name of an option, its values, its default and its help text. Flags,
// HAULOUT_* variables, keys of the file, help and docs/configuration.md are all made from this table. No I/O.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/config/option_values.hpp"

namespace haulout::agent {

struct Option {
  enum class Home {
    everywhere,            // flag, variable and key of the file
    flag_and_environment,  // for the option that names the file
    flag_only              // for modes that are meant for one run
  };
  std::string name;  // without --; also the key in the file
  Values values;
  std::string shown_default;  // as the value of a flag; empty if there is no default
  std::string help;
  Home home = Home::everywhere;
  char letter = 0;  // short flag, for example 'v' for -v; 0 if none

  // Name of the environment variable: HAULOUT_NAME.
  std::string variable() const;
  bool repeatable() const { return values.type == ValueType::list; }
  // Whether an empty value resets the option to its default.
  bool empty_resets() const;
};

struct OptionGroup {
  std::string title;
  std::vector<Option> options;
};

const std::vector<OptionGroup>& option_groups();
// All rows, in the order of the table.
std::vector<const Option*> options();
// Null if there is no option of this name.
const Option* find_option(std::string_view name);

inline constexpr std::string_view default_config_file = "/etc/haulout/config.yaml";
inline constexpr std::string_view variable_prefix = "HAULOUT_";

}  // namespace haulout::agent
