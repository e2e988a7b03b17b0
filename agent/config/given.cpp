#include "agent/config/given.hpp"

#include <fmt/format.h>
#include <functional>

#include "agent/config/value_checks.hpp"
#include "base/plain_text.hpp"
#include "base/text.hpp"
#include "k8s/yaml_codec.hpp"

namespace haulout::agent {
namespace {

// Columns of a value that are shown in a message.
constexpr std::size_t longest_shown = 80;

std::string shown(const std::string& text) {
  if (text.find("://") != std::string::npos && text.find('@') != std::string::npos) return "(with a password)";
  return fmt::format("\"{}\"", clipped(printable(text), longest_shown));
}

bool in_environment(const Option& option) {
  return option.home != Option::Home::flag_only;
}

std::vector<GivenValue> values_of(const Option& option, const std::string& variable, const std::string& value) {
  if (!option.repeatable()) return {{value, variable, ""}};
  std::vector<GivenValue> values;
  for (const std::string& part : split_at(value, ';'))
    if (!part.empty()) values.push_back({part, variable, ""});
  return values;
}

// Returns true if Kubernetes injects a variable with this name (without HAULOUT_) for a Service called haulout; see
// https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
bool is_service_link(std::string_view rest) {
  const std::string name = "_" + std::string(rest);
  if (name.ends_with("_SERVICE_HOST") || name.ends_with("_PORT") || name.find("_SERVICE_PORT") != std::string::npos)
    return true;
  const auto port = name.find("_PORT_");
  if (port == std::string::npos) return false;
  const auto digit = port + std::string_view("_PORT_").size();
  return digit < name.size() && name[digit] >= '0' && name[digit] <= '9';
}

}  // namespace

Reading read_flags(const FlagValues& flags) {
  Reading reading;
  for (const auto& [name, value] : flags) {
    const Option* option = find_option(name);
    if (option == nullptr) {
      reading.problems.push_back("unknown flag --" + name);
      continue;
    }
    std::vector<GivenValue>& values = reading.given[name];
    if (option->repeatable() && value.empty())
      values.clear();
    else
      values.push_back({value, "--" + name, ""});
  }
  return reading;
}

namespace {

Reading read_variables(const Variables& environment, const std::function<std::string(const Option&)>& variable_of) {
  Reading reading;
  for (const Option* option : options()) {
    const std::string variable = variable_of(*option);
    const auto found = variable.empty() ? environment.end() : environment.find(variable);
    if (found != environment.end())
      reading.given.emplace(option->name, values_of(*option, found->first, found->second));
  }
  return reading;
}

std::string variable_of_value(const Option& option) {
  return in_environment(option) ? option.variable() : "";
}

std::string variable_of_default(const Option& option) {
  if (option.home != Option::Home::everywhere) return {};
  return std::string(variable_prefix) + "DEFAULT_" + option.variable().substr(variable_prefix.size());
}

}  // namespace

Reading read_environment(const Variables& environment) {
  return read_variables(environment, variable_of_value);
}

Reading read_packaged_defaults(const Variables& environment) {
  return read_variables(environment, variable_of_default);
}

std::vector<std::string> environment_warnings(const Variables& environment) {
  std::vector<std::string> known;
  std::map<std::string, const Option*> by_variable;
  for (const Option* option : options()) {
    by_variable.emplace(option->variable(), option);
    if (in_environment(*option)) known.push_back(option->variable().substr(variable_prefix.size()));
    if (const std::string name = variable_of_default(*option); !name.empty()) {
      by_variable.emplace(name, option);
      known.push_back(name.substr(variable_prefix.size()));
    }
  }
  std::vector<std::string> warnings;
  for (const auto& [name, value] : environment) {
    if (!name.starts_with(variable_prefix)) continue;
    const auto option = by_variable.find(name);
    if (option != by_variable.end() && in_environment(*option->second)) continue;
    if (option != by_variable.end()) {
      warnings.push_back(fmt::format("{} is ignored: --{} is a flag only", name, option->second->name));
      continue;
    }
    const std::string rest = name.substr(variable_prefix.size());
    const auto meant = is_service_link(rest) ? std::nullopt : nearest(rest, known);
    if (meant) warnings.push_back(fmt::format("{0} is ignored; did you mean {1}{2}?", name, variable_prefix, *meant));
  }
  return warnings;
}

std::string invalid_value(const GivenValue& value, std::string_view why) {
  return fmt::format("{}{}invalid value {} for {}: {}", value.place, value.place.empty() ? "" : ": ", shown(value.text),
                     value.name, why);
}

namespace {

using k8s::YamlValue;
using Kind = k8s::YamlValue::Kind;

// Returns a problem if the file is not UTF-8 or has control characters, because the YAML parser would silently end the
// file at some of them, and replace others.
std::string unreadable(const ConfigFile& file) {
  std::size_t line = 1;
  for (std::string_view rest = file.text; !rest.empty();) {
    const std::size_t length = utf8_sequence(rest);
    const auto byte = static_cast<unsigned char>(rest.front());
    if (length == 0) return fmt::format("{}:{}: this is not UTF-8: save the file as UTF-8", file.path, line);
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F)
      return fmt::format("{}:{}: control character 0x{:02x}: remove it", file.path, line, byte);
    if (byte == '\n') ++line;
    rest.remove_prefix(length);
  }
  return {};
}

enum class Meaning { null, boolean, number, text };

Meaning meaning_of(const YamlValue& scalar) {
  if (scalar.json.starts_with('"')) return Meaning::text;
  if (scalar.json == "null") return Meaning::null;
  return scalar.json == "true" || scalar.json == "false" ? Meaning::boolean : Meaning::number;
}

bool takes_numbers(ValueType type) {
  return type == ValueType::number || type == ValueType::number_or_percentage || type == ValueType::duration;
}

// Returns a problem if YAML reads an unquoted word as a type that the option does not accept, for example `on` as a
// Boolean.
std::string misread(const Option& option, const YamlValue& scalar) {
  const ValueType type = option.values.type;
  const Meaning meaning = meaning_of(scalar);
  if (meaning == Meaning::text) return {};
  if (meaning == Meaning::null) return "it is empty";
  if (type == ValueType::boolean) return meaning == Meaning::boolean ? "" : "it must be true or false";
  if (meaning == Meaning::number && takes_numbers(type))
    return scalar.text == scalar.json
               ? ""
               : fmt::format("YAML reads {} as {}: write {}", scalar.text, scalar.json, scalar.json);
  if (type == ValueType::choice || type == ValueType::choices) return must_be_one_of(option.values.words);
  if (meaning == Meaning::boolean && takes_numbers(type))
    return type == ValueType::duration ? "it must be a duration, like 90s" : "it must be a number";
  return fmt::format("YAML reads this as the {} {}: put it in quotes",
                     meaning == Meaning::boolean ? "Boolean" : "number", scalar.json);
}

class FileReader {
 public:
  explicit FileReader(const ConfigFile& file) : file_(file) {}

  Reading read() {
    std::string problem = unreadable(file_);
    if (!problem.empty()) return {{}, {std::move(problem)}};
    const auto tree = k8s::yaml_to_tree(file_.text);
    if (!tree) return {{}, {fmt::format("{}: this is not YAML: {}", file_.path, tree.error().message())}};
    if (*tree == nullptr) return {};
    if ((*tree)->kind != Kind::mapping)
      return {{}, {place((*tree)->line) + ": the file must consist of lines like \"option: value\""}};
    for (const auto& [key, value] : (*tree)->members) read_member(*key, *value);
    return std::move(reading_);
  }

 private:
  std::string place(std::size_t line) const { return fmt::format("{}:{}", file_.path, line); }

  void problem(std::size_t line, std::string_view what) {
    reading_.problems.push_back(fmt::format("{}: {}", place(line), what));
  }

  void read_member(const YamlValue& key, const YamlValue& value) {
    const std::string name = printable(key.text);
    const auto [before, first] = lines_.emplace(key.text, key.line);
    if (!first)
      return problem(key.line,
                     fmt::format("duplicate key {} (first set in line {}): remove one of them", name, before->second));
    const Option* option = find_option(key.text);
    if (option == nullptr) return unknown(key.line, name);
    if (option->home == Option::Home::flag_only)
      return problem(key.line, fmt::format("{0} is not allowed in the file: give it as a flag, --{0}", name));
    if (option->home == Option::Home::flag_and_environment)
      return problem(key.line, fmt::format("{0} is not allowed in the file that it names: use --{0} or {1}", name,
                                           option->variable()));
    if (value.kind == Kind::mapping)
      return problem(key.line, name + " contains further keys, but the file is flat: it needs a value here");
    if (value.kind == Kind::sequence) return read_list(*option, key, value);
    if (meaning_of(value) == Meaning::null) return;
    GivenValue given{value.text, option->name, place(key.line)};
    const std::string wrong = misread(*option, value);
    if (wrong.empty() && meaning_of(value) == Meaning::boolean) given.text = value.json;  // also for yes and on
    if (!wrong.empty())
      reading_.problems.push_back(invalid_value(given, wrong));
    else if (option->repeatable() && value.text.empty())
      reading_.given[option->name] = {};
    else
      reading_.given[option->name] = {std::move(given)};
  }

  void unknown(std::size_t line, const std::string& name) {
    std::vector<std::string> known;
    for (const Option* option : options())
      if (option->home == Option::Home::everywhere) known.push_back(option->name);
    const auto meant = nearest(name, known);
    problem(line, fmt::format("unknown key \"{}\"; {}", name,
                              meant ? fmt::format("did you mean {}?", *meant)
                                    : std::string("'haulout agent --help' lists all")));
  }

  void read_list(const Option& option, const YamlValue& key, const YamlValue& list) {
    const ValueType type = option.values.type;
    if (type != ValueType::list && type != ValueType::choices && type != ValueType::command)
      return problem(key.line, option.name + " takes one value, not a list");
    std::vector<GivenValue> values;
    for (const auto& item : list.items) {
      GivenValue given{item->text, option.name, place(item->line)};
      if (item->kind != Kind::scalar)
        return problem(item->line,
                       fmt::format("an entry of {} must be a value, neither list nor mapping", option.name));
      const std::string wrong = misread(option, *item);
      if (!wrong.empty())
        reading_.problems.push_back(invalid_value(given, wrong));
      else
        values.push_back(std::move(given));
    }
    if (option.repeatable())
      reading_.given[option.name] = std::move(values);
    else
      reading_.given[option.name] = {as_one(option, values, place(key.line))};
  }

  // Converts a list to the one value that a flag would have.
  static GivenValue as_one(const Option& option, const std::vector<GivenValue>& values, std::string place) {
    std::vector<std::string> texts;
    texts.reserve(values.size());
    for (const GivenValue& value : values) texts.push_back(value.text);
    const bool program = option.values.type == ValueType::command;
    return {program ? quoted_words(texts) : joined(texts, ","), option.name, std::move(place)};
  }

  const ConfigFile& file_;
  Reading reading_;
  std::map<std::string, std::size_t> lines_;
};

}  // namespace

Reading read_file(const ConfigFile& file) {
  return FileReader(file).read();
}

}  // namespace haulout::agent
