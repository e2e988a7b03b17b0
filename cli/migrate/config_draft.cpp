#include "cli/migrate/config_draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "agent/config/option_table.hpp"
#include "agent/config/read_config.hpp"
#include "base/text.hpp"
#include "k8s/yaml_codec.hpp"

namespace haulout::cli {
namespace {

// Columns of a comment in the configuration, as docs/examples has them.
constexpr std::size_t comment_columns = 120;

bool takes_numbers(const agent::Option& option) {
  using enum ValueType;
  const ValueType type = option.values.type;
  return type == number || type == number_or_percentage || type == duration || type == boolean;
}

// Returns true if YAML reads the text as itself, without quotes.
bool is_plain(const std::string& text) {
  const auto tree = k8s::yaml_to_tree(text);
  return tree && *tree != nullptr && (*tree)->kind == k8s::YamlValue::Kind::scalar && (*tree)->text == text &&
         (*tree)->json.starts_with('"') && text.find_first_of("\"'#") == std::string::npos;
}

std::string scalar(const agent::Option& option, const std::string& text) {
  if (takes_numbers(option) || is_plain(text)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

std::string yaml_of(const ConfigLine& line) {
  const agent::Option& option = *agent::find_option(line.option);
  std::string text = line.option + ":";
  if (line.values.size() == 1) return text + " " + scalar(option, line.values.front()) + "\n";
  text += "\n";
  for (const std::string& value : line.values) text += "  - " + scalar(option, value) + "\n";
  return text;
}

// Adds what the list does not have.
void add_new(std::vector<std::string>& all, const std::vector<std::string>& more) {
  for (const std::string& one : more)
    if (std::ranges::find(all, one) == all.end()) all.push_back(one);
}

}  // namespace

std::string ConfigDraft::set(std::string_view option, const std::vector<std::string>& values,
                             const std::vector<std::string>& origin, std::string_view note) {
  for (ConfigLine& line : lines_) {
    if (line.option != option || !line.active || line.values != values) continue;
    add_new(line.origin, origin);
    return {};
  }
  agent::AgentConfig config = config_;
  for (const std::string& value : values) {
    if (printable(value) != value) return "it has a control character, or is not UTF-8";
    if (std::string wrong = agent::find_option(option)->values.set(config, value); !wrong.empty()) return wrong;
  }
  if (const auto problems = agent::contradictions(config); !problems.empty()) return problems.front();
  config_ = std::move(config);
  lines_.push_back({std::string(option), values, origin, std::string(note)});
  return {};
}

void ConfigDraft::propose(std::string_view option, const std::vector<std::string>& values,
                          const std::vector<std::string>& origin, std::string_view note) {
  lines_.push_back({std::string(option), values, origin, std::string(note), false});
}

void ConfigDraft::hold(std::string_view option, const std::string& value, std::string_view note) {
  for (ConfigLine& line : lines_)
    if (line.option == option) line.active = false;
  lines_.insert(lines_.begin(), {std::string(option), {value}, {}, std::string(note)});
}

bool ConfigDraft::has(std::string_view option) const {
  return std::ranges::any_of(lines_, [&](const ConfigLine& line) { return line.option == option && line.active; });
}

std::vector<ConfigLine> ConfigDraft::lines() const {
  std::vector<ConfigLine> lines;
  for (const agent::Option* option : agent::options())
    std::ranges::copy_if(lines_, std::back_inserter(lines),
                         [option](const ConfigLine& line) { return line.option == option->name; });
  return lines;
}

std::string comment_of(std::string_view text) {
  std::string result;
  for (const std::string& line : wrapped(printable(text), comment_columns - 2)) result += "# " + line + "\n";
  return result;
}

std::string yaml_of(const std::vector<ConfigLine>& lines) {
  std::string text;
  for (const ConfigLine& line : lines) {
    text += "\n";
    if (!line.origin.empty()) text += comment_of("kured: " + joined(line.origin, " "));
    if (!line.note.empty()) text += comment_of(line.note);
    const std::string yaml = yaml_of(line);
    if (line.active) {
      text += yaml;
      continue;
    }
    for (const std::string& row : split_at(yaml, '\n'))
      if (!row.empty()) text += "# " + printable(row) + "\n";
  }
  return text;
}

}  // namespace haulout::cli
