// The table of the agent's options: name, values and meaning of each option. The rows of the drain are those of
// drain/option_table.hpp. The default of an option is its value in AgentConfig(). Flags, HAULOUT_* variables, keys of
// the file, help and docs/configuration.md are all made from this table. No I/O.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "base/option.hpp"

namespace haulout::agent {

struct Option : OptionOf<AgentConfig> {
  enum class Home {
    everywhere,            // flag, variable and key of the file
    flag_and_environment,  // for the option that names the file
    flag_only              // for modes that are meant for one run
  };
  Option(std::string name, Values<AgentConfig> values, std::string meaning, Home home = Home::everywhere,
         char letter = 0);
  explicit Option(OptionOf<AgentConfig> row) : OptionOf<AgentConfig>(std::move(row)) {}

  Home home = Home::everywhere;

  // Returns the default as the value of a flag; empty if there is no default.
  std::string shown_default() const { return values.show(AgentConfig()); }
  // Returns the name of the environment variable: HAULOUT_NAME.
  std::string variable() const;
  bool repeatable() const { return values.type == ValueType::list; }
  // Returns true if an empty value resets the option to its default.
  bool empty_resets() const;
};

struct OptionGroup {
  std::string title;
  std::vector<Option> options;
};

const std::vector<OptionGroup>& option_groups();
// Returns all rows, in the order of the table.
std::vector<const Option*> options();
// Returns null if there is no option of this name.
const Option* find_option(std::string_view name);

inline constexpr std::string_view variable_prefix = "HAULOUT_";

// Generates docs/configuration.md.
std::string configuration_page();

}  // namespace haulout::agent
