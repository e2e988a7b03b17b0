// Encodes and decodes a pause as a value of the ConfigMap: the JSON part of pause.hpp.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "agent/gates/pause.hpp"
#include "base/text.hpp"
#include "k8s/codec.hpp"

namespace haulout::agent {
namespace {

constexpr std::string_view way_out =
    R"(write {"reason": "why", "until": "2026-12-24T18:00:00Z"}; without "until" the pause has no end)";

// Returns the string under `key`; empty if it is missing or null. Sets `problem` if it is anything else.
std::string text_of(const nlohmann::json& json, const char* key, std::string& problem) {
  if (!json.contains(key) || json[key].is_null()) return {};
  if (!json[key].is_string()) {
    problem = fmt::format("\"{}\" is not a string", key);
    return {};
  }
  return json[key].get<std::string>();
}

std::string unknown_key(const nlohmann::json& json) {
  for (const auto& item : json.items()) {
    if (item.key() != "reason" && item.key() != "until") return item.key();
  }
  return {};
}

}  // namespace

Pause parse_pause_json(std::string_view key, std::string_view value) {
  const auto broken = [&](const std::string& why, const std::string& reason) {
    const std::string fault = fmt::format("key {} of ConfigMap haulout: {}; {}", printable(key), why, way_out);
    return Pause{reason.empty() ? fault : fmt::format("{} ({})", reason, fault)};
  };
  const auto json = nlohmann::json::parse(value, nullptr, false);
  if (!json.is_object()) return broken("it is not a JSON object", "");
  std::string problem;
  const std::string reason = printable(text_of(json, "reason", problem));
  const std::string end = text_of(json, "until", problem);
  // Reject unknown keys: a misspelt "until" would silently give the pause no end.
  if (const std::string other = unknown_key(json); problem.empty() && !other.empty())
    problem = fmt::format("unknown key \"{}\"", printable(other));
  if (!problem.empty()) return broken(problem, reason);
  Pause pause{reason.empty() ? "no reason given" : reason};
  if (end.empty()) return pause;
  const auto until = k8s::parse_time(end);
  if (!until) return broken(fmt::format("\"{}\" is not a time in RFC 3339", printable(end)), reason);
  pause.until = *until;
  return pause;
}

std::string format_pause_json(const Pause& pause) {
  nlohmann::ordered_json json = {{"reason", printable(pause.reason)}};
  if (pause.until) json["until"] = k8s::format_time(*pause.until);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace haulout::agent
