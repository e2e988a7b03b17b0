#include "k8s/workload.hpp"

#include <fmt/format.h>

namespace haulout::k8s {
namespace {

using codec::Object;
using codec::Problem;

constexpr std::array<std::string_view, 4> dropped = {"managedFields", "template", "volumeClaimTemplates", "conditions"};

void read(const Object& json, std::string_view kind, Workload& workload) {
  const auto metadata = json.object("metadata");
  workload.ns = metadata.string("namespace");
  workload.name = metadata.string("name");
  workload.uid = metadata.string("uid");
  for (const auto& [key, value] : metadata.strings("annotations"))
    if (kept_annotation(key)) workload.annotations.emplace(key, value);
  workload.controller = codec::read_controller(metadata);
  workload.terminating = metadata.time("deletionTimestamp").has_value();
  // A Scale without `replicas` has zero. The other kinds then have their default, one.
  const auto spec = json.object("spec");
  workload.replicas = spec.has("replicas") ? spec.integer32("replicas") : kind == "Scale" ? 0 : 1;
  workload.ready_replicas = json.object("status").integer32("readyReplicas");
  if (kind != "Deployment") return;
  Rollout& rollout = workload.rollout.emplace();
  const auto strategy = spec.object("strategy");
  if (auto type = strategy.string("type"); !type.empty()) rollout.strategy = std::move(type);
  if (auto surge = strategy.object("rollingUpdate").int_or_string("maxSurge"); !surge.empty())
    rollout.max_surge = std::move(surge);
  rollout.replacement_policy = spec.string("podReplacementPolicy");
}

}  // namespace

Result<Workload> decode_workload(std::string_view text, std::string_view kind) {
  const auto json = codec::parse(text, dropped);
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
  std::map<std::string, std::string> kinds;  // plural name of a resource → its kind
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
