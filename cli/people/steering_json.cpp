#include "cli/people/steering_job.hpp"

#include <nlohmann/json.hpp>

namespace haulout::cli {

namespace {

using Json = nlohmann::ordered_json;

// Returns an object with this one entry. In a merge patch, the value null removes the entry.
Json entry(std::string_view key, const std::optional<std::string>& value) {
  Json json = Json::object();
  json[std::string(key)] = value ? Json(*value) : Json(nullptr);
  return json;
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string annotation_patch(const k8s::Node& node, std::string_view key, const std::optional<std::string>& value) {
  return dumped({{"metadata", {{"resourceVersion", node.resource_version}, {"annotations", entry(key, value)}}}});
}

std::string entry_patch(const k8s::ConfigMap& config_map, std::string_view key,
                        const std::optional<std::string>& value) {
  return dumped({{"metadata", {{"resourceVersion", config_map.resource_version}}}, {"data", entry(key, value)}});
}

}  // namespace haulout::cli
