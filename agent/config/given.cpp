#include "agent/config/given.hpp"

#include <fmt/format.h>
#include <functional>

#include "base/suggest.hpp"
#include "base/text.hpp"

namespace haulout::agent {
namespace {

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

// Whether Kubernetes injects a variable with this name (without HAULOUT_) for a Service called haulout, see
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

}  // namespace haulout::agent
