// The table of the agent's options: name, values and meaning of each option, including the rows of
// drain/option_table.hpp that the agent has. The default of an option is its value in AgentConfig(). Flags, HAULOUT_*
// variables, keys of the file, help and docs/configuration.md are all made from this table. Pointers and references to
// its rows stay valid until the program ends. No I/O; never fails.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "base/option.hpp"

namespace haulout::agent {

// A row of the table: one option of the agent.
struct Option : OptionOf<AgentConfig> {
  // Where the option can be set.
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

// Returns all groups, in the order of the help and of docs/configuration.md.
const std::vector<OptionGroup>& option_groups();
// Returns all rows, in the order of the table.
std::vector<const Option*> options();
// Returns null if there is no option of this name.
const Option* find_option(std::string_view name);

inline constexpr std::string_view variable_prefix = "HAULOUT_";

// Generates docs/configuration.md.
std::string configuration_page();

}  // namespace haulout::agent
