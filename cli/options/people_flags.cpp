#include "cli/options/people_flags.hpp"

#include <fmt/format.h>

#include "cli/options/flag_values.hpp"
#include "k8s/codec.hpp"

namespace haulout::cli {
namespace {

using flag_values::boolean;
using flag_values::one_of;
using flag_values::selector_flag;
using Kind = Flag::Kind;

std::string apply_until(Settings& settings, const std::string& value) {
  if (const auto time = k8s::parse_time(value)) {
    settings.people.until = *time;
    return {};
  }
  const auto duration = parse_duration(value);
  if (!duration) return "write a time like 2026-12-24T18:00:00Z, or for how long: 90m, 12h";
  if (*duration <= Duration::zero()) return "it must be longer than nothing";
  settings.people.until = *duration;
  return {};
}

// Accepts only valid values of labels, because the name of a pool may come from a label of the Node (--pool-label of
// the agents). The name becomes part of a key in a ConfigMap ("pause.<pool>").
std::string apply_pool(Settings& settings, const std::string& value) {
  const auto alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const auto allowed = [&](char c) { return alphanumeric(c) || c == '-' || c == '_' || c == '.'; };
  if (value.empty() || value.size() > 63 || !std::all_of(value.begin(), value.end(), allowed) ||
      !alphanumeric(value.front()) || !alphanumeric(value.back()))
    return "a pool is named as the agents' --pool, or the value of their --pool-label, has it: letters, digits, \"-\", "
           "\"_\" and \".\", the first and the last a letter or a digit";
  settings.people.pool = value;
  return {};
}

std::string apply_reason(Settings& settings, const std::string& value) {
  settings.people.reason = printable(value);
  return {};
}

Flag output_flag(std::string help, std::vector<std::pair<std::string, OutputFormat>> formats) {
  return {"output",
          'o',
          Kind::value,
          "text",
          std::move(help),
          one_of<OutputFormat>(std::move(formats), [](Settings& s, OutputFormat format) { s.output = format; })};
}

std::vector<Flag> target_flags(std::string_view what) {
  return {
      {"all", 0, Kind::boolean, "false", fmt::format("{} the whole cluster.", what),
       boolean([](Settings& s, bool on) { s.people.all = on; })},
      {"pool", 0, Kind::value, "", fmt::format("{} this pool.", what), apply_pool},
      selector_flag(),
  };
}

std::vector<Flag> pause_flags() {
  std::vector<Flag> flags = target_flags("Pause");
  flags.push_back(
      {"reason", 0, Kind::value, "", "The reason for the pause. Agents, status and explain show it.", apply_reason});
  flags.push_back({"until", 0, Kind::value, "",
                   "When the pause ends by itself: a time (2026-12-24T18:00:00Z) or a duration (90m, 12h). Without it "
                   "the pause lasts until `resume`.",
                   apply_until});
  return flags;
}

}  // namespace

std::vector<Flag> people_flags(Command command) {
  switch (command) {
    case Command::status:
      return {
          output_flag(
              "Output format: text, wide or json. wide adds pool, slot, versions, operating system and last update.",
              {{"text", OutputFormat::text}, {"wide", OutputFormat::wide}, {"json", OutputFormat::json}}),
          selector_flag(),
          {"watch", 'w', Kind::boolean, "false",
           "Watch for changes and show each one, until interrupted. With -o json: one object per line.",
           boolean([](Settings& s, bool on) { s.people.watch = on; })}};
    case Command::explain:
      return {
          {"fit", 0, Kind::boolean, "false",
           "Also report for each pod that must leave whether it fits on another node, as the scheduler would decide. "
           "Lists the nodes and pods of the whole cluster.",
           boolean([](Settings& s, bool on) { s.people.check_fit = on; })},
          output_flag("Output format: text or json.", {{"text", OutputFormat::text}, {"json", OutputFormat::json}})};
    case Command::pause: return pause_flags();
    case Command::resume: return target_flags("Resume");
    case Command::request_reboot:
      return {{"reason", 0, Kind::value, "", "The reason for the reboot.", apply_reason}, selector_flag()};
    default: return {};
  }
}

}  // namespace haulout::cli
