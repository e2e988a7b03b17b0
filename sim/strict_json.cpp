#include "sim/strict_json.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

namespace haulout::sim {
namespace {

// A schema: field name to its own fields; an empty map means anything goes below.
struct Schema {
  std::map<std::string, Schema> fields;
};

const Schema& metadata_schema() {
  static const Schema schema{{{"name", {}},
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
                              {"ownerReferences", {}},
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

const Schema& node_schema() {
  static const Schema schema{{{"apiVersion", {}},
                              {"kind", {}},
                              {"metadata", metadata_schema()},
                              {"spec",
                               {{{"podCIDR", {}},
                                 {"podCIDRs", {}},
                                 {"providerID", {}},
                                 {"unschedulable", {}},
                                 {"taints", {}},
                                 {"configSource", {}},
                                 {"externalID", {}}}}},
                              {"status", {}}}};
  return schema;
}

void collect(const Json& value, const Schema& schema, const std::string& path, std::vector<std::string>& into) {
  if (!value.is_object() || schema.fields.empty()) return;
  for (const auto& [key, below] : value.items()) {
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
std::vector<std::string> unknown_node_fields(const Json& body) {
  return unknown(body, node_schema());
}

}  // namespace haulout::sim
