#include "agent/rehearsal/world_json.hpp"

#include "agent/text.hpp"
#include "placement/room.hpp"

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

std::vector<sim::Object> without_node(const sim::Cluster& cluster) {
  std::vector<sim::Object> pods = cluster.store().list("pods", {}, sim::By::node, "");
  std::erase_if(pods, [](const sim::Object& pod) { return !sim::waits_for_node(*pod); });
  return pods;
}

// Of a status, and of the final delete: what a kubelet sends, one pod after the other, when its containers have ended.
constexpr Duration kubelet_report = std::chrono::milliseconds(15);
// Controllers, scheduler and kubelets take this long to settle whatever the snapshot caught in motion, and as long
// again as a pod takes to be Ready.
constexpr Duration come_to_rest = std::chrono::seconds(5);

}  // namespace

Duration rest_of(const Assumptions& assumptions) {
  return come_to_rest + assumptions.ready_after;
}

sim::Timing timing_of(const Assumptions& assumptions) {
  sim::Timing timing;
  timing.pod_start = assumptions.ready_after;
  timing.kubelet_report = kubelet_report;
  if (assumptions.terminate_within) timing.termination_limit = *assumptions.terminate_within;
  return timing;
}

std::set<std::string> homeless(const sim::Cluster& cluster) {
  std::set<std::string> uids;
  for (const sim::Object& pod : without_node(cluster)) uids.insert(sim::uid_of(*pod));
  return uids;
}

std::vector<NoRoom> no_room(const sim::Cluster& cluster, const std::set<std::string>& before) {
  std::vector<NoRoom> result;
  for (const sim::Object& pod : without_node(cluster))
    if (before.count(sim::uid_of(*pod)) == 0)
      result.push_back(
          {key_of(*pod), controller_of(*pod), sim::text(sim::condition(*pod, "PodScheduled"), "/message")});
  return result;
}

std::vector<std::string> not_weighed(const sim::Cluster& cluster, const std::string& node) {
  std::vector<std::string> result;
  for (const sim::Object& pod : cluster.store().list("pods", {}, sim::By::node, node)) {
    if (sim::may_stay(*pod)) continue;
    const std::vector<std::string> why = placement::not_weighed(*pod);
    if (!why.empty()) result.push_back(key_of(*pod) + " (" + joined(why, ", ") + ")");
  }
  return result;
}

}  // namespace haulout::agent
