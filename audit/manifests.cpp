#include "audit/manifests.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <map>

namespace haulout::audit {
namespace {

using sim::Json;

const char* replicas_field(std::string_view kind) {
  if (kind == "Deployment" || kind == "ReplicaSet" || kind == "StatefulSet") return "/spec/replicas";
  return kind == "Job" ? "/spec/parallelism" : nullptr;
}

void make_running(Json& pod) {
  pod["status"] = {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
}

// Gives the pod of a StatefulSet its claims, and adds those to the objects.
void add_claims(const Json& set, Json& pod, std::vector<Json>& objects) {
  for (const Json& claim : sim::at(set, "/spec/volumeClaimTemplates")) {
    const std::string volume = sim::name_of(claim);
    const std::string name = volume + "-" + sim::name_of(pod);
    Json object = {{"apiVersion", "v1"},
                   {"kind", "PersistentVolumeClaim"},
                   {"metadata", {{"name", name}, {"namespace", sim::ns_of(pod)}}}};
    object["spec"] = sim::at(claim, "/spec");
    objects.push_back(std::move(object));
    pod["spec"]["volumes"].push_back({{"name", volume}, {"persistentVolumeClaim", {{"claimName", name}}}});
  }
}

Json pod_of(const Json& controller, std::int64_t index) {
  const std::string kind = sim::text(controller, "/kind"), name = sim::name_of(controller);
  Json metadata = sim::at(controller, "/spec/template/metadata");
  if (!metadata.is_object()) metadata = Json::object();
  metadata["name"] = fmt::format("{}-{}", name, index);
  metadata["namespace"] = sim::ns_of(controller);
  metadata["ownerReferences"] = {{{"apiVersion", sim::text(controller, "/apiVersion")},
                                  {"kind", kind},
                                  {"name", name},
                                  {"uid", sim::uid_of(controller)},
                                  {"controller", true}}};
  if (kind == "Deployment") metadata["labels"]["pod-template-hash"] = "expected";
  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(metadata)}};
  pod["spec"] = sim::at(controller, "/spec/template/spec");
  if (!pod["spec"].is_object()) pod["spec"] = Json::object();
  pod["spec"].erase("nodeName");
  make_running(pod);
  return pod;
}

// Returns the smallest number of pods that an autoscaler gives each of its targets, by "namespace/kind/name".
std::map<std::string, std::int64_t> autoscaled(const std::vector<Json>& objects) {
  std::map<std::string, std::int64_t> least;
  for (const Json& object : objects) {
    if (sim::text(object, "/kind") != "HorizontalPodAutoscaler") continue;
    const std::string ns = sim::ns_of(object), kind = sim::text(object, "/spec/scaleTargetRef/kind");
    least[fmt::format("{}/{}/{}", ns.empty() ? "default" : ns, kind, sim::text(object, "/spec/scaleTargetRef/name"))] =
        sim::number(object, "/spec/minReplicas", 1);
  }
  return least;
}

}  // namespace

bool are_manifests(const std::vector<Json>& objects) {
  return std::ranges::none_of(objects, [](const Json& object) {
    const std::string kind = sim::text(object, "/kind");
    const bool has_run = !sim::text(object, "/status/phase").empty() || !sim::uid_of(object).empty();
    return kind == "Node" || (kind == "Pod" && has_run && !sim::text(object, "/spec/nodeName").empty());
  });
}

std::vector<Json> expanded(std::vector<Json> objects) {
  std::vector<Json> more;
  const auto least = autoscaled(objects);
  for (Json& object : objects) {
    const std::string kind = sim::text(object, "/kind");
    const sim::ResourceInfo* info = sim::find_kind(kind);
    if (info && info->namespaced && sim::ns_of(object).empty()) object["metadata"]["namespace"] = "default";
    if (sim::uid_of(object).empty())
      object["metadata"]["uid"] = fmt::format("{}/{}/{}", kind, sim::ns_of(object), sim::name_of(object));
    if (kind == "Pod") {
      if (object.contains("spec")) object["spec"].erase("nodeName");
      make_running(object);
    }
    const char* field = replicas_field(kind);
    if (!field) continue;
    const auto autoscaler = least.find(fmt::format("{}/{}/{}", sim::ns_of(object), kind, sim::name_of(object)));
    const std::int64_t stated = sim::number(object, field, 1);
    // An autoscaler leaves a controller with 0 replicas alone.
    const bool scales = autoscaler != least.end() && stated != 0;
    const std::int64_t replicas =
        std::clamp<std::int64_t>(scales ? std::max(stated, autoscaler->second) : stated, 0, most_replicas);
    for (std::int64_t i = 0; i < replicas; ++i) {
      Json pod = pod_of(object, i);
      if (kind == "StatefulSet") add_claims(object, pod, more);
      more.push_back(std::move(pod));
    }
  }
  std::move(more.begin(), more.end(), std::back_inserter(objects));
  return objects;
}

}  // namespace haulout::audit
