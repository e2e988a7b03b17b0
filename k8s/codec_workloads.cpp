// Decoders for the controllers of pods: the number of replicas, and which resources have a scale subresource.
#include <fmt/format.h>

#include "k8s/codec.hpp"
#include "k8s/codec_json.hpp"
#include "k8s/codec_objects.hpp"

namespace haulout::k8s {

namespace {

using codec::Object;
using codec::Problem;

const std::vector<std::string_view>& dropped_of_workloads() {
  static const std::vector<std::string_view> keys = {"managedFields", "template", "volumeClaimTemplates", "conditions"};
  return keys;
}

void read(const Object& json, std::string_view kind, Workload& workload) {
  const auto metadata = json.object("metadata");
  workload.ns = metadata.string("namespace");
  workload.name = metadata.string("name");
  workload.uid = metadata.string("uid");
  for (const auto& [key, value] : metadata.strings("annotations"))
    if (kept_annotation(key)) workload.annotations.emplace(key, value);
  metadata.each("ownerReferences", [&](const Object& owner) {
    if (!owner.boolean("controller")) return;
    if (auto controller = codec::read_owner(owner); codec::is_complete(controller))
      workload.controller = std::move(controller);
  });
  // A Scale omits zero. The other kinds omit their default, one.
  const auto spec = json.object("spec");
  workload.replicas = spec.has("replicas") ? spec.integer32("replicas") : kind == "Scale" ? 0 : 1;
  workload.ready_replicas = json.object("status").integer32("readyReplicas");
}

}  // namespace

Result<Workload> decode_workload(std::string_view text, std::string_view kind) {
  const auto json = codec::parse(text, dropped_of_workloads());
  if (!json) return json.error();
  const auto checked = codec::check_kind(**json, kind);
  if (!checked) return checked.error();
  Workload workload;
  Problem problem;
  read(Object(**json, kind, problem), kind, workload);
  if (workload.name.empty()) problem.note("metadata.name is missing");
  if (workload.uid.empty()) problem.note("metadata.uid is missing");
  if (problem.text.empty()) return workload;
  return codec::decode_error(fmt::format("{} {}/{} is invalid: {}", kind, workload.ns, workload.name, problem.text));
}

Result<std::map<std::string, std::string>> decode_scalable(std::string_view text) {
  constexpr std::string_view kind = "APIResourceList";
  constexpr std::string_view suffix = "/scale";
  const auto json = codec::parse(text);
  if (!json) return json.error();
  const auto checked = codec::check_kind(**json, kind);
  if (!checked) return checked.error();
  Problem problem;
  const Object list(**json, kind, problem);
  std::map<std::string, std::string> kinds;  // plural → kind
  std::map<std::string, std::string> scalable;
  list.each("resources", [&](const Object& resource) {
    const auto name = resource.string("name"), of_kind = resource.string("kind");
    if (!name.empty() && !of_kind.empty() && name.find('/') == std::string::npos) kinds[name] = of_kind;
  });
  list.each("resources", [&](const Object& resource) {
    const auto name = resource.string("name");
    if (!name.ends_with(suffix)) return;
    const auto plural = name.substr(0, name.size() - suffix.size());
    if (const auto found = kinds.find(plural); found != kinds.end()) scalable[found->second] = plural;
  });
  if (!list.has("resources")) problem.note("resources are missing");
  if (problem.text.empty()) return scalable;
  return codec::decode_error(fmt::format("{} is invalid: {}", kind, problem.text));
}

}  // namespace haulout::k8s
