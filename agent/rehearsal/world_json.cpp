#include "agent/rehearsal/world_json.hpp"

namespace haulout::agent {
namespace {

using sim::Json;

std::string key_of(const Json& pod) {
  return sim::ns_of(pod) + "/" + sim::name_of(pod);
}

std::string controller_of(const Json& pod) {
  const Json& owner = sim::controller_of(pod);
  return owner.is_null() ? "" : sim::text(owner, "/kind") + "/" + sim::text(owner, "/name");
}

bool has_host_port(const Json& pod) {
  for (const Json& container : sim::at(pod, "/spec/containers"))
    for (const Json& port : sim::at(container, "/ports"))
      if (sim::number(port, "/hostPort") != 0) return true;
  return false;
}

bool has_claim(const Json& pod) {
  for (const Json& volume : sim::at(pod, "/spec/volumes"))
    if (volume.contains("persistentVolumeClaim") || volume.contains("ephemeral")) return true;
  return false;
}

bool hard_spread(const Json& pod) {
  for (const Json& constraint : sim::at(pod, "/spec/topologySpreadConstraints"))
    if (sim::text(constraint, "/whenUnsatisfiable") != "ScheduleAnyway") return true;
  return false;
}

}  // namespace

std::set<std::string> homeless(const sim::Cluster& cluster) {
  std::set<std::string> uids;
  for (const Json& pod : cluster.all("pods"))
    if (sim::waits_for_node(pod)) uids.insert(sim::uid_of(pod));
  return uids;
}

std::vector<NoRoom> no_room(const sim::Cluster& cluster, const std::set<std::string>& before) {
  std::vector<NoRoom> result;
  for (const Json& pod : cluster.all("pods"))
    if (sim::waits_for_node(pod) && before.count(sim::uid_of(pod)) == 0)
      result.push_back({key_of(pod), controller_of(pod), sim::text(sim::condition(pod, "PodScheduled"), "/message")});
  return result;
}

std::vector<std::string> not_weighed(const sim::Cluster& cluster, const std::string& node) {
  constexpr const char* pod_affinity = "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution";
  std::vector<std::string> result;
  for (const Json& pod : cluster.all("pods")) {
    if (sim::text(pod, "/spec/nodeName") != node || sim::may_stay(pod)) continue;
    std::string why;
    const auto add = [&why](bool holds, const char* what) {
      if (holds) why += (why.empty() ? "" : ", ") + std::string(what);
    };
    add(has_claim(pod), "volumes");
    add(hard_spread(pod), "topology spread");
    add(!sim::at(pod, pod_affinity).empty(), "pod affinity");
    add(has_host_port(pod), "host ports");
    if (!why.empty()) result.push_back(key_of(pod) + " (" + why + ")");
  }
  return result;
}

}  // namespace haulout::agent
