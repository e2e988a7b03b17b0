#include "cli/drain/report_json.hpp"
#include "cli/people/fleet_summary.hpp"

#include <nlohmann/json.hpp>

#include "k8s/codec.hpp"

namespace haulout::cli {
namespace {

using Json = nlohmann::ordered_json;

Json time_json(const std::optional<WallTime>& time) {
  return time ? Json(k8s::format_time(*time)) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

// Converts the name of a count to a JSON field: "up to date" becomes "upToDate".
std::string camel_case(const std::string& words) {
  std::string result;
  bool capital = false;
  for (const char c : words) {
    if (c != ' ') result += capital ? static_cast<char>(c - 'a' + 'A') : c;
    capital = c == ' ';
  }
  return result;
}

Json required_json(const NodeView& node) {
  if (node.reboot_required == "true") return true;
  return node.reboot_required == "false" ? Json(false) : Json(nullptr);
}

Json pause_json(const std::optional<agent::Pause>& pause) {
  if (!pause) return nullptr;
  return {{"reason", pause->reason}, {"until", time_json(pause->until)}};
}

Json attempt_json(const std::optional<agent::PastAttempt>& attempt) {
  if (!attempt) return nullptr;
  return {{"at", k8s::format_time(attempt->at)}, {"reason", text_or_null(attempt->reason)}, {"why", attempt->why}};
}

Json node_json(const NodeView& node) {
  return {{"name", node.name},
          {"uid", node.uid},
          {"agent", node.agent},
          {"state", text_or_null(node.state)},
          {"reason", text_or_null(node.reason)},
          {"message", text_or_null(node.message)},
          {"since", time_json(node.since)},
          {"rebootRequired", required_json(node)},
          {"rebootRequested", node.requested},
          {"rebootRequestedAt", time_json(node.requested_at)},
          {"rebootRequestReason", text_or_null(node.request_reason)},
          {"ready", node.ready},
          {"unschedulable", node.unschedulable},
          {"cordonedByOthers", node.foreign_cordon},
          {"pause", pause_json(node.pause)},
          {"pool", text_or_null(node.pool)},
          {"slot", text_or_null(node.turn)},
          {"fromVersion", text_or_null(node.from)},
          {"toVersion", text_or_null(node.to)},
          {"packageUpdates", node.package_updates},
          {"osImage", text_or_null(node.os_image)},
          {"lastUpdate", time_json(node.last_update)},
          {"lastAttempt", attempt_json(node.last_attempt)},
          {"overdueSince", time_json(node.overdue)}};
}

std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace

std::string node_status_json(const NodeView& node) {
  return dumped(node_json(node), -1);
}

std::string node_status_list_json(const Fleet& fleet, WallTime now) {
  Json items = Json::array();
  for (const NodeView& node : fleet.nodes) items.push_back(node_json(node));
  Json summary = {{"nodes", fleet.nodes.size()}, {"counts", Json::object()}};
  for (const Count& count : counts(fleet.nodes)) summary["counts"][camel_case(count.what)] = count.nodes;
  summary["holds"] = hold_lines(fleet, now);
  return dumped({{"apiVersion", api_version},
                 {"kind", "NodeStatusList"},
                 {"at", k8s::format_time(now)},
                 {"summary", std::move(summary)},
                 {"items", std::move(items)}},
                2);
}

std::string watched_node_json(WatchedChange change, const NodeView& node, WallTime now) {
  Json object = {{"apiVersion", api_version}, {"kind", "NodeStatus"}, {"at", k8s::format_time(now)}};
  object.update(node_json(node));
  const char* type = "MODIFIED";
  if (change == WatchedChange::added) type = "ADDED";
  if (change == WatchedChange::deleted) type = "DELETED";
  return dumped({{"type", type}, {"object", std::move(object)}}, -1);
}

}  // namespace haulout::cli
