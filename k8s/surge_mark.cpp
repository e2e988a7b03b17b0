#include "k8s/surge_mark.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "k8s/codec.hpp"
#include "k8s/label_selector.hpp"
#include "k8s/pod.hpp"

namespace haulout::k8s {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Values that are null remove the label or the annotation.
std::string patch_of(const Pod& pod, const Json& labels, const Json& annotations) {
  Json metadata = {{"uid", pod.uid}, {"resourceVersion", pod.resource_version}};
  if (!labels.is_null()) metadata["labels"] = labels;
  if (!annotations.is_null()) metadata["annotations"] = annotations;
  return text_of({{"metadata", std::move(metadata)}});
}

}  // namespace

std::string encode_surge_mark(const SurgeMark& mark) {
  return text_of({{"run", mark.run},
                  {"by", mark.by},
                  {"at", format_time(mark.at)},
                  {"node", mark.node},
                  {"hash", mark.hash},
                  {"owner", mark.owner},
                  {"ownerUid", mark.owner_uid},
                  {"deployment", mark.deployment},
                  {"deploymentUid", mark.deployment_uid},
                  {"ready", mark.ready}});
}

std::optional<SurgeMark> parse_surge_mark(std::string_view text) {
  const auto json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto member = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  SurgeMark mark;
  mark.run = member("run");
  mark.by = member("by");
  if (const auto at = parse_time(member("at"))) mark.at = *at;
  mark.node = member("node");
  mark.hash = member("hash");
  mark.owner = member("owner");
  mark.owner_uid = member("ownerUid");
  mark.deployment = member("deployment");
  mark.deployment_uid = member("deploymentUid");
  if (const auto ready = json.find("ready"); ready != json.end() && ready->is_number_integer())
    mark.ready = ready->get<std::int64_t>();
  if (!is_label_name(mark.hash) || mark.node.empty() || mark.owner.empty() || mark.owner_uid.empty())
    return std::nullopt;
  return mark;
}

std::string surge_patch(const Pod& pod, const SurgeMark& mark) {
  return patch_of(pod, {{std::string(template_hash_label), nullptr}},
                  {{std::string(surge_mark_annotation), encode_surge_mark(mark)}});
}

std::string relabel_patch(const Pod& pod) {
  return patch_of(pod, {{std::string(template_hash_label), pod.surge_mark->hash}}, nullptr);
}

std::string unmark_patch(const Pod& pod) {
  return patch_of(pod, nullptr, {{std::string(surge_mark_annotation), nullptr}});
}

}  // namespace haulout::k8s
