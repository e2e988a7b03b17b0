#include <algorithm>
#include <array>

#include "placement/room.hpp"

namespace haulout::placement {
namespace {

bool has_host_port(const Json& pod) {
  for (const char* containers : {"/spec/containers", "/spec/initContainers"})
    for (const Json& container : at(pod, containers))
      for (const Json& port : at(container, "/ports"))
        if (number(port, "/hostPort") != 0) return true;
  return false;
}

// All kinds of volumes count, except those that every node provides for any number of pods.
bool has_bound_volume(const Json& pod) {
  constexpr std::array everywhere = {"configMap", "downwardAPI", "emptyDir",  "gitRepo", "hostPath",
                                     "image",     "nfs",         "projected", "secret"};
  const Json& volumes = at(pod, "/spec/volumes");
  return std::any_of(volumes.begin(), volumes.end(), [&](const Json& volume) {
    return std::none_of(everywhere.begin(), everywhere.end(), [&](const char* kind) { return volume.contains(kind); });
  });
}

bool hard_spread(const Json& pod) {
  const Json& constraints = at(pod, "/spec/topologySpreadConstraints");
  return std::any_of(constraints.begin(), constraints.end(),
                     [](const Json& constraint) { return text(constraint, "/whenUnsatisfiable") != "ScheduleAnyway"; });
}

}  // namespace

bool far_reaching(const Json& pod) {
  for (const Json& term : at(pod, "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution")) {
    const Json& namespaces = at(term, "/namespaceSelector");
    if (namespaces.is_object() && !namespaces.empty()) return true;
    if (!at(term, "/matchLabelKeys").empty() || !at(term, "/mismatchLabelKeys").empty()) return true;
  }
  return false;
}

bool compares_taints(const Json& pod) {
  const Json& tolerations = at(pod, "/spec/tolerations");
  return std::any_of(tolerations.begin(), tolerations.end(), [](const Json& toleration) {
    const std::string op = text(toleration, "/operator");
    return !op.empty() && op != "Equal" && op != "Exists";
  });
}

std::vector<std::string> not_weighed(const Json& pod) {
  std::vector<std::string> result;
  const auto add = [&result](bool holds, const char* what) {
    if (holds) result.emplace_back(what);
  };
  add(has_bound_volume(pod), "volumes");
  add(hard_spread(pod), "topology spread");
  add(!at(pod, "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution").empty(), "pod affinity");
  add(far_reaching(pod), "anti-affinity across namespaces or by label keys");
  add(has_host_port(pod), "host ports");
  add(!at(pod, "/spec/resourceClaims").empty() || !claimed_resources(pod).empty(), "resource claims");
  add(has_scheduling_gates(pod), "scheduling gates");
  add(!foreign_scheduler(pod).empty(), "another scheduler");
  add(compares_taints(pod), "tolerations that compare");
  return result;
}

}  // namespace haulout::placement
