// The table of the agent's options: one row says how an option is spelt, what it takes, what it is by default and what
// it does. Flags, HAULOUT_* variables, keys of the file, help and docs/configuration.md are all made from it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/config/option_values.hpp"

namespace haulout::agent {

struct Option {
  enum class Home {
    everywhere,            // flag, variable, key of the file
    flag_and_environment,  // what says where the file is
    flag_only              // what is meant once
  };
  std::string name;  // --name and key of the file
  Values values;
  std::string shown_default;  // as a flag would have it; empty: none
  std::string help;
  Home home = Home::everywhere;
  char letter = 0;  // 0: none

  // HAULOUT_NAME
  std::string variable() const;
  bool repeatable() const { return values.type == ValueType::list; }
  // An empty value means the default.
  bool empty_resets() const;
};

struct OptionGroup {
  std::string title;
  std::vector<Option> options;
};

const std::vector<OptionGroup>& option_groups();
// All rows in their order.
std::vector<const Option*> options();
// Nothing when there is none of this name.
const Option* find_option(std::string_view name);

inline constexpr std::string_view default_config_file = "/etc/haulout/config.yaml";
inline constexpr std::string_view variable_prefix = "HAULOUT_";

}  // namespace haulout::agent
