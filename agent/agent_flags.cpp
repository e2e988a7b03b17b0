#include "agent/agent_flags.hpp"

#include "agent/config/option_table.hpp"

namespace haulout::agent {
namespace {

Flag flag_of(const Option& option) {
  Flag flag;
  flag.name = option.name;
  flag.letter = option.letter;
  flag.kind = option.values.type == ValueType::boolean ? Flag::Kind::boolean : Flag::Kind::value;
  flag.shown_default = option.shown_default;
  flag.help = option.help;
  if (option.values.type == ValueType::choice) flag.help += " One of: " + option.values.form + ".";
  if (option.values.type == ValueType::choices) flag.help += " Any of: " + option.values.form + ".";
  flag.apply = [name = option.name](Settings& settings, const std::string& value) -> std::string {
    settings.agent_options.emplace_back(name, value);
    return {};
  };
  return flag;
}

}  // namespace

std::vector<FlagGroup> agent_flag_groups() {
  std::vector<FlagGroup> groups;
  for (const OptionGroup& group : option_groups()) {
    FlagGroup& flags = groups.emplace_back();
    flags.title = group.title;
    for (const Option& option : group.options) flags.flags.push_back(flag_of(option));
  }
  return groups;
}

std::vector<Flag> agent_flags() {
  std::vector<Flag> all;
  for (FlagGroup& group : agent_flag_groups())
    for (Flag& flag : group.flags) all.push_back(std::move(flag));
  return all;
}

}  // namespace haulout::agent
