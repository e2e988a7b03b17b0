#include "sim/validation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace haulout::sim {
namespace {

using Problems = std::vector<std::string>;

constexpr std::size_t longest_label = 63;
constexpr std::size_t longest_note = 1024;
constexpr std::size_t longest_word = 128;

bool digit(char c) {
  return c >= '0' && c <= '9';
}
bool alphanumeric(char c) {
  return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Returns the decoder's message unless the time has exactly six decimals: 2026-11-21T01:00:00.000000Z.
std::optional<std::string> micro_time_problem(const std::string& text) {
  constexpr std::size_t seconds_end = 19, fraction = 7;
  const std::string_view rest = std::string_view(text).substr(std::min(text.size(), seconds_end));
  const bool six = rest.size() > fraction && rest.front() == '.' && !digit(rest[fraction]) &&
                   std::all_of(rest.begin() + 1, rest.begin() + fraction, digit);
  if (six) return std::nullopt;
  return fmt::format(R"(parsing time "{}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "{}" as ".000000")", text,
                     rest);
}

std::string field(const Json& object, const char* name) {
  return text(object, ("/" + std::string(name)).c_str());
}

void check_labels(const Json& object, Problems& problems) {
  const Json& labels = at(object, "/metadata/labels");
  if (!labels.is_object()) return;
  for (const auto& [key, value] : labels.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : std::string();
    const bool inner = std::all_of(text.begin(), text.end(),
                                   [](char c) { return alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
    if (text.size() > longest_label)
      problems.push_back(fmt::format("metadata.labels: Invalid value: \"{}\": must be no more than 63 bytes", text));
    else if (!inner || (!text.empty() && (!alphanumeric(text.front()) || !alphanumeric(text.back()))))
      problems.push_back(fmt::format(
          "metadata.labels: Invalid value: \"{}\": a valid label must be an empty string or consist of alphanumeric "
          "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
          "'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
          text));
  }
}

void check_owners(const Json& object, Problems& problems) {
  std::size_t index = 0;
  for (const Json& owner : at(object, "/metadata/ownerReferences")) {
    for (const char* name : {"apiVersion", "kind", "name", "uid"})
      if (field(owner, name).empty())
        problems.push_back(
            fmt::format("metadata.ownerReferences[{}].{}: Invalid value: \"\": must not be empty", index, name));
    ++index;
  }
}

void check_lease(const Json& lease, Problems& problems) {
  const auto seconds = number(lease, "/spec/leaseDurationSeconds", 1);
  if (seconds <= 0)
    problems.push_back(fmt::format("spec.leaseDurationSeconds: Invalid value: {}: must be greater than 0", seconds));
}

void check_series(const Json& event, Problems& problems) {
  if (!at(event, "/series").is_object()) return;
  if (number(event, "/series/count") < 2) problems.push_back("series.count: Invalid value: \"\": should be at least 2");
  if (text(event, "/series/lastObservedTime").empty()) problems.push_back("series.lastObservedTime: Required value");
}

void check_new_event(const Json& event, Problems& problems) {
  if (text(event, "/eventTime").empty()) problems.push_back("eventTime: Required value");
  for (const char* name : {"reportingController", "reportingInstance", "action", "reason"})
    if (field(event, name).empty()) problems.push_back(fmt::format("{}: Required value", name));
  for (const char* name : {"reportingInstance", "action", "reason"})
    if (field(event, name).size() > longest_word)
      problems.push_back(fmt::format("{}: Invalid value: \"\": can have at most {} characters", name, longest_word));
  if (field(event, "note").size() > longest_note)
    problems.push_back(fmt::format("message: Invalid value: \"\": can have at most {} characters", longest_note));
  const std::string type = field(event, "type");
  if (type != "Normal" && type != "Warning")
    problems.push_back(fmt::format("type: Invalid value: \"\": has invalid value: {}", type));
  if (event.contains("deprecatedCount")) problems.push_back("count: Invalid value: \"\": needs to be unset");
}

// An update may change the series of an Event, but none of these fields. The registry's messages use the field names of
// core/v1.
void check_same_event(const Json& event, const Json& before, Problems& problems) {
  for (const auto& [own, name] :
       {std::pair{"note", "message"}, std::pair{"reason", "reason"}, std::pair{"action", "action"},
        std::pair{"type", "type"}, std::pair{"eventTime", "eventTime"}, std::pair{"regarding", "involvedObject"},
        std::pair{"reportingController", "reportingController"}, std::pair{"reportingInstance", "reportingInstance"}}) {
    const Json now = event.value(own, Json()), then = before.value(own, Json());
    if (now != then) problems.push_back(fmt::format("{}: Invalid value: {}: field is immutable", name, now.dump()));
  }
}

}  // namespace

std::optional<std::string> undecodable(const ResourceInfo& info, const Json& object) {
  std::vector<std::string> times;
  if (info.resource == "leases") times = {"/spec/acquireTime", "/spec/renewTime"};
  if (info.resource == "events") times = {"/eventTime", "/series/lastObservedTime"};
  for (const std::string& pointer : times) {
    const std::string time = text(object, pointer.c_str());
    if (time.empty()) continue;
    if (auto problem = micro_time_problem(time)) return problem;
  }
  return std::nullopt;
}

std::optional<StatusBody> refused(const ResourceInfo& info, const Json& object, const Json& before) {
  Problems problems;
  check_labels(object, problems);
  check_owners(object, problems);
  if (info.resource == "leases") check_lease(object, problems);
  if (info.resource == "events") {
    if (before.is_null())
      check_new_event(object, problems);
    else
      check_same_event(object, before, problems);
    check_series(object, problems);
  }
  if (problems.empty()) return std::nullopt;
  const std::string all = problems.size() == 1 ? problems.front() : fmt::format("[{}]", fmt::join(problems, ", "));
  return invalid(info, name_of(object), all);
}

}  // namespace haulout::sim
