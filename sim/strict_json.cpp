#include "sim/strict_json.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

namespace haulout::sim {
namespace {

// Maps the name of a field to the schema of its value or, if the field is a list, of its entries. An empty map allows
// any fields below.
struct Schema {
  std::map<std::string, Schema> fields;
};

// Returns a schema with these fields, which may have any content.
Schema fields(std::initializer_list<const char*> names) {
  Schema schema;
  for (const char* name : names) schema.fields.emplace(name, Schema{});
  return schema;
}

const Schema& metadata_schema() {
  static const Schema schema{
      {{"name", {}},
       {"generateName", {}},
       {"namespace", {}},
       {"selfLink", {}},
       {"uid", {}},
       {"resourceVersion", {}},
       {"generation", {}},
       {"creationTimestamp", {}},
       {"deletionTimestamp", {}},
       {"deletionGracePeriodSeconds", {}},
       {"labels", {}},
       {"annotations", {}},
       {"ownerReferences", fields({"apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"})},
       {"finalizers", {}},
       {"managedFields", {}}}};
  return schema;
}

const Schema& delete_options_schema() {
  static const Schema schema{{{"apiVersion", {}},
                              {"kind", {}},
                              {"gracePeriodSeconds", {}},
                              {"preconditions", {{{"uid", {}}, {"resourceVersion", {}}}}},
                              {"orphanDependents", {}},
                              {"propagationPolicy", {}},
                              {"dryRun", {}},
                              {"ignoreStoreReadErrorWithClusterBreakingPotential", {}}}};
  return schema;
}

const Schema& eviction_schema() {
  static const Schema schema{
      {{"apiVersion", {}}, {"kind", {}}, {"metadata", metadata_schema()}, {"deleteOptions", delete_options_schema()}}};
  return schema;
}

Schema node_status_schema() {
  Schema status =
      fields({"capacity", "allocatable", "phase", "addresses", "daemonEndpoints", "nodeInfo", "images", "volumesInUse",
              "volumesAttached", "config", "runtimeHandlers", "features", "declaredFeatures"});
  status.fields["conditions"] =
      fields({"type", "status", "lastHeartbeatTime", "lastTransitionTime", "reason", "message"});
  return status;
}

const Schema& node_schema() {
  static const Schema schema{{{"apiVersion", {}},
                              {"kind", {}},
                              {"metadata", metadata_schema()},
                              {"spec",
                               {{{"podCIDR", {}},
                                 {"podCIDRs", {}},
                                 {"providerID", {}},
                                 {"unschedulable", {}},
                                 {"taints", fields({"key", "value", "effect", "timeAdded"})},
                                 {"configSource", {}},
                                 {"externalID", {}}}}},
                              {"status", node_status_schema()}}};
  return schema;
}

const Schema& lease_schema() {
  static const Schema schema{{{"apiVersion", {}},
                              {"kind", {}},
                              {"metadata", metadata_schema()},
                              {"spec", fields({"holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime",
                                               "leaseTransitions", "strategy", "preferredHolder"})}}};
  return schema;
}

const Schema& event_schema() {
  static const Schema reference =
      fields({"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"});
  static const Schema schema{{{"apiVersion", {}},
                              {"kind", {}},
                              {"metadata", metadata_schema()},
                              {"eventTime", {}},
                              {"series", fields({"count", "lastObservedTime"})},
                              {"reportingController", {}},
                              {"reportingInstance", {}},
                              {"action", {}},
                              {"reason", {}},
                              {"regarding", reference},
                              {"related", reference},
                              {"note", {}},
                              {"type", {}},
                              {"deprecatedSource", {}},
                              {"deprecatedFirstTimestamp", {}},
                              {"deprecatedLastTimestamp", {}},
                              {"deprecatedCount", {}}}};
  return schema;
}

const Schema& config_map_schema() {
  static const Schema schema{{{"apiVersion", {}},
                              {"kind", {}},
                              {"metadata", metadata_schema()},
                              {"data", {}},
                              {"binaryData", {}},
                              {"immutable", {}}}};
  return schema;
}

void collect(const Json& value, const Schema& schema, const std::string& path, std::vector<std::string>& into) {
  if (schema.fields.empty()) return;
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) collect(value[i], schema, fmt::format("{}[{}]", path, i), into);
  if (!value.is_object()) return;
  for (const auto& [key, below] : value.items()) {
    if (key.starts_with('$')) continue;  // directive of a strategic merge patch
    const std::string here = path.empty() ? key : fmt::format("{}.{}", path, key);
    const auto known = schema.fields.find(key);
    if (known == schema.fields.end())
      into.push_back(fmt::format("unknown field \"{}\"", here));
    else
      collect(below, known->second, here, into);
  }
}

std::vector<std::string> unknown(const Json& body, const Schema& schema) {
  std::vector<std::string> result;
  collect(body, schema, "", result);
  return result;
}

}  // namespace

std::optional<Json> parse_json(std::string_view text, std::vector<std::string>* duplicates) {
  struct Level {
    std::set<std::string> keys;
    std::string last;
  };
  std::vector<Level> levels;
  const auto watch_keys = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) levels.emplace_back();
    if (event == Json::parse_event_t::object_end && !levels.empty()) levels.pop_back();
    if (event == Json::parse_event_t::key && !levels.empty()) {
      levels.back().last = parsed.get<std::string>();
      if (!levels.back().keys.insert(levels.back().last).second) {
        std::string path;
        for (const Level& level : levels) path += (path.empty() ? "" : ".") + level.last;
        duplicates->push_back(fmt::format("duplicate field \"{}\"", path));
      }
    }
    return true;
  };
  Json value = Json::parse(text, watch_keys, false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

std::vector<std::string> unknown_eviction_fields(const Json& body) {
  return unknown(body, eviction_schema());
}
std::vector<std::string> unknown_delete_options_fields(const Json& body) {
  return unknown(body, delete_options_schema());
}
std::vector<std::string> unknown_fields(const ResourceInfo& info, const Json& body) {
  if (!body.is_object()) return {};
  if (info.kind == "Node") return unknown(body, node_schema());
  if (info.kind == "Lease") return unknown(body, lease_schema());
  if (info.kind == "Event") return unknown(body, event_schema());
  if (info.kind == "ConfigMap") return unknown(body, config_map_schema());
  return {};
}

}  // namespace haulout::sim
