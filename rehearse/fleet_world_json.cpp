#include "rehearse/fleet_world_json.hpp"

#include "agent/gates/pause.hpp"
#include "agent/hooks/hooks.hpp"
#include "agent/node/node_status.hpp"
#include "agent/node/state.hpp"
#include "drain/cordon.hpp"
#include "k8s/codec.hpp"
#include "k8s/objects.hpp"

namespace haulout::rehearse {
namespace {

using sim::Json;

constexpr const char* config_map = "haulout";

bool has(const Json& node, std::string_view annotation) {
  return !sim::annotation(node, std::string(annotation).c_str()).empty();
}

// Returns true if an agent, not a person, has cordoned the node. The mark of a schedulable node does not count.
bool cordoned_by_agent(const Json& node) {
  const auto decoded = k8s::decode<k8s::Node>(node.dump());
  if (!decoded || drain::cordon_owner(*decoded) != drain::CordonOwner::haulout) return false;
  const auto mark = drain::mark_of(*decoded);
  return mark && mark->by == agent::cordoned_by;
}

Json without_own_keys(const Json& node) {
  Json labels = Json::object();
  for (const std::string_view key : {agent::state_label, agent::reason_label, agent::reboot_required_label})
    labels[std::string(key)] = nullptr;
  Json annotations = Json::object();
  for (const std::string_view key : {agent::record_annotation, agent::message_annotation, agent::hook_annotation,
                                     agent::pause_annotation, agent::request_annotation})
    annotations[std::string(key)] = nullptr;
  const Json& present = sim::at(node, "/metadata/annotations");
  if (present.is_object())
    for (const auto& [key, value] : present.items())
      if (key.starts_with(agent::hook_prefix) || key.starts_with(agent::hook_done_prefix)) annotations[key] = nullptr;
  return {{"metadata", {{"labels", labels}, {"annotations", annotations}, {"managedFields", nullptr}}},
          {"status", {{"images", nullptr}}}};
}

bool has_hooks(const Json& node) {
  const Json& annotations = sim::at(node, "/metadata/annotations");
  if (!annotations.is_object()) return false;
  for (const auto& [key, value] : annotations.items())
    if (key.starts_with(agent::hook_prefix)) return true;
  return false;
}

}  // namespace

Forgotten forget_haulout(sim::Cluster& cluster, const agent::AgentConfig& config) {
  Forgotten forgotten;
  for (const Json& node : cluster.all("nodes")) {
    const std::string name = sim::name_of(node);
    if (has(node, agent::pause_annotation)) forgotten.pauses.push_back("node/" + name);
    if (has_hooks(node)) forgotten.hooks.push_back("node/" + name);
    Json patch = without_own_keys(node);
    if (cordoned_by_agent(node)) {
      forgotten.half_done.push_back("node/" + name);
      patch["spec"]["unschedulable"] = nullptr;
      patch["metadata"]["annotations"][std::string(drain::cordon_annotation)] = nullptr;
    }
    cluster.patch("nodes", "", name, patch);
  }
  for (const Json& lease : cluster.all("leases")) cluster.remove("leases", sim::ns_of(lease), sim::name_of(lease));
  if (!cluster.get("configmaps", config.ns, config_map).is_null()) {
    forgotten.pauses.push_back("the ConfigMap " + config.ns + "/" + config_map);
    cluster.remove("configmaps", config.ns, config_map);
  }
  if (cluster.get("namespaces", "", config.ns).is_null())
    cluster.create("namespaces", {{"metadata", {{"name", config.ns}}}, {"status", {{"phase", "Active"}}}});
  return forgotten;
}

Duration longest_grace(const sim::Cluster& cluster) {
  std::int64_t longest = 30;
  for (const sim::Object& pod : cluster.store().list("pods"))
    longest = std::max(longest, sim::number(*pod, "/spec/terminationGracePeriodSeconds", 30));
  return k8s::grace_period(longest);
}

}  // namespace haulout::rehearse
