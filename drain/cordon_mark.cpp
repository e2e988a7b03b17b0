// The codec part of cordon.hpp: the mark as JSON, and the patches that set and remove it.
#include <nlohmann/json.hpp>

#include "drain/cordon.hpp"
#include "k8s/codec.hpp"

namespace haulout::drain {

std::string encode_mark(const CordonMark& mark) {
  const nlohmann::ordered_json json = {{"run", mark.run}, {"by", mark.by}, {"at", k8s::format_time(mark.at)}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<CordonMark> mark_of(const k8s::Node& node) {
  const auto found = node.annotations.find(std::string(cordon_annotation));
  if (found == node.annotations.end()) return std::nullopt;
  const auto json = nlohmann::json::parse(found->second, nullptr, false);
  if (!json.is_object() || !json.contains("at") || !json["at"].is_string()) return std::nullopt;
  auto at = k8s::parse_time(json["at"].get<std::string>());
  if (!at) return std::nullopt;
  const auto text = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
  };
  return CordonMark{text("run"), text("by"), *at};
}

std::optional<std::string> cordon_patch(const k8s::Node& node, const CordonMark& mark) {
  if (node.unschedulable) return std::nullopt;
  const nlohmann::json patch = {{"metadata",
                                 {{"resourceVersion", node.resource_version},
                                  {"annotations", {{std::string(cordon_annotation), encode_mark(mark)}}}}},
                                {"spec", {{"unschedulable", true}}}};
  return patch.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<std::string> uncordon_patch(const k8s::Node& node, bool foreign_too) {
  const bool marked = node.annotations.contains(std::string(cordon_annotation));
  const CordonOwner owner = cordon_owner(node);
  const bool clear_field = owner == CordonOwner::haulout || (owner == CordonOwner::other && foreign_too);
  if (!clear_field && !marked) return std::nullopt;
  nlohmann::json patch = {{"metadata", {{"resourceVersion", node.resource_version}}}};
  if (marked) patch["metadata"]["annotations"] = {{std::string(cordon_annotation), nullptr}};
  if (clear_field) patch["spec"] = {{"unschedulable", nullptr}};
  return patch.dump();
}

std::optional<std::string> take_back_patch(const k8s::Node& node, const std::string& run) {
  const auto mark = mark_of(node);
  if (!mark || mark->run != run) return std::nullopt;
  return uncordon_patch(node, false);
}

}  // namespace haulout::drain
