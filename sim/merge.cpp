#include "sim/merge.hpp"

#include "k8s/codec.hpp"

namespace haulout::sim {

void merge_patch(Json& target, const Json& patch) {
  target.merge_patch(patch);
}

namespace {

// Returns the fields that identify an entry of a list; empty if a patch replaces the whole list.
std::vector<std::string> merge_keys(const std::string& field) {
  if (field == "conditions") return {"type"};
  if (field == "taints") return {"key", "effect"};
  if (field == "ownerReferences") return {"uid"};
  return {};
}

void merge_list(Json& target, const Json& patch, const std::vector<std::string>& keys) {
  if (!target.is_array()) target = Json::array();
  for (const Json& entry : patch) {
    const auto same = [&](const Json& present) {
      return std::all_of(keys.begin(), keys.end(),
                         [&](const std::string& key) { return present.value(key, "") == entry.value(key, ""); });
    };
    const auto found = std::find_if(target.begin(), target.end(), same);
    if (entry.value("$patch", "") == "delete") {
      if (found != target.end()) target.erase(found);
    } else if (found != target.end()) {
      strategic_merge_patch(*found, entry);
    } else {
      target.push_back(entry);
    }
  }
}

}  // namespace

void strategic_merge_patch(Json& target, const Json& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = Json::object();
  for (const auto& [key, value] : patch.items()) {
    const auto keys = merge_keys(key);
    if (key.starts_with('$')) continue;
    if (value.is_null())
      target.erase(key);
    else if (value.is_array() && !keys.empty())
      merge_list(target[key], value, keys);
    else
      strategic_merge_patch(target[key], value);
  }
}

void book_unschedulable(Json& node, const std::string& manager, WallTime now) {
  Json& entries = node["metadata"]["managedFields"];
  if (!entries.is_array()) entries = Json::array();
  for (Json& entry : entries) {
    Json& fields = entry["fieldsV1"]["f:spec"];
    if (fields.is_object()) fields.erase("f:unschedulable");
    if (fields.empty()) entry["fieldsV1"].erase("f:spec");
  }
  for (auto entry = entries.begin(); entry != entries.end();)
    entry = (*entry)["fieldsV1"].empty() ? entries.erase(entry) : entry + 1;
  if (flag(node, "/spec/unschedulable"))
    entries.push_back({{"manager", manager},
                       {"operation", "Update"},
                       {"apiVersion", "v1"},
                       {"time", k8s::format_time(now)},
                       {"fieldsType", "FieldsV1"},
                       {"fieldsV1", {{"f:spec", {{"f:unschedulable", Json::object()}}}}}});
  if (entries.empty()) node["metadata"].erase("managedFields");
}

}  // namespace haulout::sim
