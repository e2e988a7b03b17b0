#include "agent/config/read_config.hpp"

#include "base/text.hpp"

namespace haulout::agent {
namespace {

// Sets one option from the values of one source. Returns the problems.
std::vector<std::string> set(const Option& option, const std::vector<GivenValue>& values, AgentConfig& config) {
  std::vector<std::string> problems;
  for (const GivenValue& value : values) {
    if (value.text.empty() && option.empty_resets()) {
      if (option.repeatable()) problems.push_back(invalid_value(value, "it is empty"));
      continue;
    }
    const std::string wrong = option.values.set(config, value.text);
    if (!wrong.empty()) problems.push_back(invalid_value(value, wrong));
  }
  return problems;
}

// Returns the values that count: all values of an option that may be repeated, otherwise the last one.
std::vector<GivenValue> standing(const Option& option, const std::vector<GivenValue>& values) {
  if (option.repeatable() || values.size() < 2) return values;
  return {values.back()};
}

// If the back end is automatic and a sentinel is given, the kind of sentinel determines the back end.
void settle_backend(AgentConfig& config) {
  if (config.backend != BackendChoice::automatic) return;
  if (!config.sentinel.empty())
    config.backend = BackendChoice::file;
  else if (!config.sentinel_command.empty())
    config.backend = BackendChoice::command;
}

}  // namespace

std::variant<AgentConfig, std::string> read_config(const FlagValues& flags, const Variables& environment,
                                                   const std::optional<ConfigFile>& file) {
  std::vector<Reading> sources;  // the lowest precedence first
  sources.push_back(read_packaged_defaults(environment));
  sources.push_back(file ? read_file(*file) : Reading());
  sources.push_back(read_environment(environment));
  sources.push_back(read_flags(flags));

  AgentConfig config;
  std::vector<std::string> problems;
  for (const Reading& source : sources) {
    problems.insert(problems.end(), source.problems.begin(), source.problems.end());
    for (const auto& [name, values] : source.given) {
      AgentConfig judged;
      for (std::string& problem : set(*find_option(name), values, judged)) problems.push_back(std::move(problem));
    }
  }
  for (const Option* option : options()) {
    const auto given = [&](const Reading& source) { return source.given.contains(option->name); };
    const auto highest = std::find_if(sources.rbegin(), sources.rend(), given);
    if (highest != sources.rend()) set(*option, standing(*option, highest->given.at(option->name)), config);
  }
  if (problems.empty()) problems = contradictions(config);
  if (!problems.empty()) return joined(problems, "\n");
  settle_backend(config);
  return config;
}

}  // namespace haulout::agent
