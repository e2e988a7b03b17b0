#include "sim/pod_template.hpp"

#include <fmt/format.h>

namespace haulout::sim {
namespace {

void request_the_limits(Json& containers) {
  for (Json& container : containers) {
    const Json limits = at(container, "/resources/limits");
    if (!limits.is_object()) continue;
    Json& requests = container["resources"]["requests"];
    if (!requests.is_object()) requests = Json::object();
    for (const auto& [resource, limit] : limits.items())
      if (!requests.contains(resource)) requests[resource] = limit;
  }
}

void admit(Json& spec, const Json& sibling) {
  for (const char* field :
       {"containers", "initContainers", "resources", "overhead", "priority", "priorityClassName", "preemptionPolicy"})
    if (const Json& admitted = at(at(sibling, "/spec"), (std::string("/") + field).c_str()); !admitted.is_null())
      spec[field] = admitted;
}

// Each pod of a StatefulSet has its own claims. They replace volumes with the same names.
void add_claims(Json& pod, const Json& templates) {
  for (const Json& claim : templates) {
    const std::string name = name_of(claim);
    if (name.empty()) continue;
    Json& volumes = pod["spec"]["volumes"];
    if (volumes.is_null()) volumes = Json::array();
    volumes.erase(std::remove_if(volumes.begin(), volumes.end(),
                                 [&](const Json& volume) { return text(volume, "/name") == name; }),
                  volumes.end());
    volumes.push_back(
        {{"name", name}, {"persistentVolumeClaim", {{"claimName", fmt::format("{}-{}", name, name_of(pod))}}}});
  }
}

}  // namespace

Json owner_reference(const Json& owner) {
  return {{"apiVersion", owner.value("apiVersion", "")},
          {"kind", owner.value("kind", "")},
          {"name", name_of(owner)},
          {"uid", uid_of(owner)},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

Json pod_of_template(const Json& controller, const Json& sibling, const std::string& name) {
  Json pod = {{"metadata", Json::object()}, {"spec", Json::object()}, {"status", {{"phase", "Pending"}}}};
  const Json& of_template = at(controller, "/spec/template");
  if (of_template.is_object()) {
    pod["metadata"] = of_template.value("metadata", Json::object());
    pod["spec"] = of_template.value("spec", Json::object());
  }
  if (!pod["metadata"].is_object()) pod["metadata"] = Json::object();
  for (const char* field : {"creationTimestamp", "uid", "resourceVersion"}) pod["metadata"].erase(field);
  pod["metadata"]["name"] = name;
  pod["metadata"]["namespace"] = ns_of(controller);
  pod["metadata"]["ownerReferences"] = Json::array({owner_reference(controller)});
  if (!sibling.is_null()) {
    admit(pod["spec"], sibling);
  } else {
    for (const char* containers : {"containers", "initContainers"})
      if (pod["spec"].contains(containers)) request_the_limits(pod["spec"][containers]);
  }
  add_claims(pod, at(controller, "/spec/volumeClaimTemplates"));
  return pod;
}

}  // namespace haulout::sim
