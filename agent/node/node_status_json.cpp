#include <fmt/chrono.h>

#include <nlohmann/json.hpp>

#include "agent/node/node_status.hpp"
#include "agent/node/pool.hpp"
#include "agent/node/record.hpp"
#include "base/plain_text.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"
#include "k8s/codec.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {

namespace {

// Limit for the message, in characters. The message may include text of other programs, and the server limits all
// annotations together to 256 KiB.
constexpr std::size_t longest_message = 1024;

using Json = nlohmann::ordered_json;
using Entries = std::map<std::string, std::string>;

// Adds a change to a merge patch if the value is not there yet. An empty value becomes null, which removes the key.
void put(Json& changes, const Entries& present, std::string_view key, const std::string& value) {
  const auto found = present.find(std::string(key));
  if (value.empty()) {
    if (found != present.end()) changes[std::string(key)] = nullptr;
  } else if (found == present.end() || found->second != value) {
    changes[std::string(key)] = value;
  }
}

// Returns true if the mark names this annotation.
bool is_named(std::string_view mark, std::string_view key) {
  return fmt::format(",{},", mark).find(fmt::format(",{},", key)) != std::string::npos;
}

std::string_view required(Need need) {
  switch (need) {
    case Need::yes: return "true";
    case Need::no: return "false";
    case Need::unknown: return "unknown";
  }
  return "unknown";
}

// Returns a version as the value of a label: other characters become "_", and the first and the last one are plain.
std::string label_value(const std::string& version) {
  constexpr std::size_t longest = 63;
  const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::string value;
  for (const char c : version.substr(0, longest)) value += plain(c) || c == '-' || c == '.' ? c : '_';
  while (!value.empty() && !plain(value.back())) value.pop_back();
  value.erase(value.begin(), std::find_if(value.begin(), value.end(), plain));
  return value.empty() ? "unnamed" : value;
}

// Returns true if the agent may change the Node's pool label: there is none, or it has the pool in the Node's record.
// Decodes that record, so ask only if a change is needed.
bool pool_label_is_ours(const k8s::Node& node) {
  const auto label = k8s::value_at(node.labels, pool_label);
  if (!label) return true;
  const auto record = record_of(node);
  return record && record->pool == *label;
}

}  // namespace

std::string shown_record(const k8s::Node& node) {
  return k8s::value_at(node.annotations, record_annotation).value_or("");
}

std::optional<Record> record_of(const k8s::Node& node) {
  const auto value = k8s::value_at(node.annotations, record_annotation);
  return value ? std::optional(decode_record(*value)) : std::nullopt;
}

Status shown_status(const k8s::Node& node, const Record& record) {
  return {record.state, k8s::value_at(node.labels, reason_label).value_or(""),
          k8s::value_at(node.annotations, message_annotation).value_or(""), record.since, record.judged};
}

std::optional<WallTime> reboot_request(const k8s::Node& node) {
  constexpr std::string_view with_time = "reboot at ";
  const std::string value = k8s::value_at(node.annotations, request_annotation).value_or("");
  const std::string request = one_line(std::string_view(value).substr(0, value.find(';')));
  if (request == written_request({})) return WallTime::min();
  if (!request.starts_with(with_time)) return std::nullopt;
  const auto time = k8s::parse_time(std::string_view(request).substr(with_time.size()));
  return time ? std::optional(*time) : std::nullopt;
}

std::optional<std::string> unreadable_request(const k8s::Node& node) {
  constexpr std::size_t longest_value = 100;
  const std::string value = k8s::value_at(node.annotations, request_annotation).value_or("");
  if (value.empty() || reboot_request(node)) return std::nullopt;
  return fmt::format(
      "the annotation {} requests no reboot, because its value cannot be read: \"{}\"; write \"reboot\" "
      "or \"reboot at 2026-12-24T22:00:00Z\", or run haulout request-reboot {}",
      request_annotation, printable(shortened(value, longest_value)), node.name);
}

std::string written_request(std::optional<WallTime> at) {
  return at ? "reboot at " + k8s::format_time(*at) : std::string("reboot");
}

std::string served_request(const k8s::Node& node, bool begun_for_it, WallTime now) {
  const auto from = reboot_request(node);
  const bool served = from && (*from == WallTime::min() || (begun_for_it && *from <= now));
  return served ? k8s::value_at(node.annotations, request_annotation).value_or("") : std::string();
}

bool reboot_requested(const k8s::Node& node, WallTime now) {
  const auto from = reboot_request(node);
  return from && *from <= now;
}

std::optional<std::string> status_patch(const k8s::Node& node, const Record& record, const std::string& encoded,
                                        const Status& status, Need need, std::string_view served) {
  Json labels = Json::object();
  put(labels, node.labels, state_label, std::string(to_string(record.state)));
  put(labels, node.labels, reason_label, status.reason);
  put(labels, node.labels, failed_version_label,
      record.failed_versions.empty() ? std::string() : label_value(record.failed_versions.back()));
  put(labels, node.labels, reboot_required_label, std::string(required(need)));
  if (!record.pool.empty() && k8s::value_at(node.labels, pool_label) != record.pool && pool_label_is_ours(node))
    put(labels, node.labels, pool_label, record.pool);
  Json annotations = Json::object();
  if (record.cause != reason::record_unreadable) put(annotations, node.annotations, record_annotation, encoded);
  put(annotations, node.annotations, message_annotation, shortened(status.message, longest_message));
  put(annotations, node.annotations, hook_annotation, asked_ticket(record));
  if (!served.empty() && k8s::value_at(node.annotations, request_annotation) == served)
    put(annotations, node.annotations, request_annotation, {});
  if (labels.empty() && annotations.empty()) return std::nullopt;
  Json metadata{{"resourceVersion", node.resource_version}};
  if (!labels.empty()) metadata["labels"] = std::move(labels);
  if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
  return Json{{"metadata", std::move(metadata)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::string> exclude_patch(const k8s::Node& node, bool exclude) {
  const auto found = node.labels.find(std::string(exclude_label));
  const bool there = found != node.labels.end();
  const bool ours = there && found->second == exclude_value;
  if (exclude ? there : !ours) return std::nullopt;
  const Json value = exclude ? Json(exclude_value) : Json(nullptr);
  return Json{{"metadata", {{"resourceVersion", node.resource_version}, {"labels", {{exclude_label, value}}}}}}.dump();
}

Duty hold_duty(const Record& record, bool wanted) {
  if (record.cause == reason::record_unreadable) return Duty::keep;
  const bool out = record.state == State::degraded ? in_maintenance(record) : duties_of(record.state).turn == Duty::yes;
  return wanted && out ? Duty::yes : Duty::no;
}

std::optional<std::string> hold_patch(const k8s::Node& node, Duty duty) {
  if (duty == Duty::keep) return std::nullopt;
  const auto mark = k8s::value_at(node.annotations, autoscaler_mark);
  // If the Node has more annotations than are kept, the agent does not know which it has.
  const bool begins = duty == Duty::yes && !mark && node.annotations.size() < k8s::most_annotations;
  if (duty == Duty::yes && !mark && !begins) return std::nullopt;
  Json changes = Json::object();
  std::string ours;
  for (const std::string_view key : autoscaler_annotations) {
    const auto value = k8s::value_at(node.annotations, key);
    const bool still_ours = mark && is_named(*mark, key) && value == autoscaler_value;
    if (begins && !value) changes[std::string(key)] = autoscaler_value;
    if (duty == Duty::no && still_ours) changes[std::string(key)] = nullptr;
    if (still_ours || (begins && !value)) ours += (ours.empty() ? "" : ",") + std::string(key);
  }
  put(changes, node.annotations, autoscaler_mark, duty == Duty::no ? "" : ours.empty() ? "none" : ours);
  if (changes.empty()) return std::nullopt;
  return Json{{"metadata", {{"resourceVersion", node.resource_version}, {"annotations", std::move(changes)}}}}.dump();
}

bool in_maintenance(const Record& record) {
  // If the record cannot be read, the node counts as in maintenance, because it may be.
  return !record.run.empty() || record.cause == reason::record_unreadable;
}

std::optional<std::string> no_status_patch(const k8s::Node& node) {
  Json labels = Json::object();
  for (const std::string_view key : status_labels) put(labels, node.labels, key, {});
  if (pool_label_is_ours(node)) put(labels, node.labels, pool_label, {});
  Json annotations = Json::object();
  for (const std::string_view key : {record_annotation, message_annotation, hook_annotation})
    put(annotations, node.annotations, key, {});
  if (labels.empty() && annotations.empty()) return std::nullopt;
  Json metadata{{"resourceVersion", node.resource_version}};
  if (!labels.empty()) metadata["labels"] = std::move(labels);
  if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
  return Json{{"metadata", std::move(metadata)}}.dump();
}

}  // namespace haulout::agent
