#include "cli/options/agent_flags.hpp"

#include "agent/config/option_table.hpp"

namespace haulout::cli {
namespace {

// Replaces each Markdown link by the path of its target: "[guards](guards.md)" becomes "docs/guards.md". The table of
// options is also the source of a page of the documentation, but a terminal has no links.
std::string without_links(std::string text) {
  for (std::size_t middle = text.find("]("); middle != std::string::npos; middle = text.find("](", middle)) {
    const std::size_t begin = text.rfind('[', middle);
    const std::size_t end = text.find(')', middle);
    if (begin == std::string::npos || end == std::string::npos) return text;
    const std::string target = text.substr(middle + 2, end - middle - 2);
    text.replace(begin, end - begin + 1, "docs/" + target);
    middle = begin;
  }
  return text;
}

Flag flag_of(const agent::Option& option) {
  Flag flag;
  flag.name = option.name;
  flag.letter = option.letter;
  flag.kind = option.values.type == agent::ValueType::boolean ? Flag::Kind::boolean : Flag::Kind::value;
  flag.shown_default = option.shown_default;
  flag.help = without_links(option.help);
  if (option.values.type == agent::ValueType::choice) flag.help += " One of: " + option.values.form + ".";
  if (option.values.type == agent::ValueType::choices) flag.help += " Any of: " + option.values.form + ".";
  flag.apply = [name = option.name](Settings& settings, const std::string& value) -> std::string {
    settings.agent_options.emplace_back(name, value);
    return {};
  };
  return flag;
}

}  // namespace

std::vector<FlagGroup> agent_flag_groups() {
  std::vector<FlagGroup> groups;
  for (const agent::OptionGroup& group : agent::option_groups()) {
    FlagGroup& flags = groups.emplace_back();
    flags.title = group.title;
    for (const agent::Option& option : group.options) flags.flags.push_back(flag_of(option));
  }
  return groups;
}

std::vector<Flag> agent_flags() {
  std::vector<Flag> all;
  for (FlagGroup& group : agent_flag_groups())
    for (Flag& flag : group.flags) all.push_back(std::move(flag));
  return all;
}

}  // namespace haulout::cli
