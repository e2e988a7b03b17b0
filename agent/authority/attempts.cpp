#include "agent/authority/attempts.hpp"

#include "agent/slots/slot_rules.hpp"
#include "k8s/requests.hpp"

namespace haulout::agent {
namespace {

constexpr k8s::WriteOptions dry_run{.dry_run = k8s::DryRun::server};
// No object has this name or this UID. If an object with the name exists after all, its UID differs, so the server
// rejects the request.
constexpr std::string_view nobody = "haulout-probe";
constexpr std::string_view nobodys_uid = "00000000-0000-0000-0000-000000000000";

http::Request list_one(const k8s::Api& api, std::string ns, std::string field_selector = {}) {
  k8s::ListOptions options;
  options.limit = 1;
  options.ns = std::move(ns);
  options.field_selector = std::move(field_selector);
  return k8s::list(api, options);
}

http::Request eviction(const std::string& ns, std::string_view pod, std::optional<std::int64_t> grace) {
  return k8s::evict(ns, pod, {.uid = std::string(nobodys_uid), .grace_seconds = grace, .write = dry_run});
}

http::Request label(const std::string& node, std::string_view key) {
  return k8s::patch<k8s::Node>({}, node, R"({"metadata":{"labels":{")" + std::string(key) + R"(":"true"}}})", dry_run);
}

k8s::NodeEvent event(const AttemptContext& context) {
  k8s::NodeEvent event;
  event.name = std::string(nobody) + "." + context.node.name;
  event.node = context.node.name;
  event.node_uid = context.node.uid;
  event.reason = event.action = "Probe";
  event.reporting_controller = "haulout.dev/agent";
  event.reporting_instance = context.node.name;
  event.event_time = context.now;
  return event;
}

}  // namespace

std::vector<Attempt> needed_attempts(const AttemptContext& context) {
  // If a proxy drops the `dryRun` parameter, these requests still do no harm.
  return {
      {"list the pods on the own Node", list_one(k8s::Kind<k8s::Pod>::api, {}, "spec.nodeName=" + context.node.name)},
      {"cordon and mark the own Node",
       k8s::patch<k8s::Node>({}, context.node.name, R"({"metadata":{"annotations":{"haulout.dev/probe":"true"}}})",
                             dry_run)},
      // If the credential may evict, the server answers that there is no such pod.
      {"evict pods on the own Node", eviction(context.pod_ns, nobody, std::nullopt), true}};
}

std::vector<Attempt> refused_to_nodes(const AttemptContext& context) {
  // The admission plug-in NodeRestriction forbids kubelets to set labels with this prefix.
  return {{"identities of nodes (is the admission plug-in NodeRestriction on?)",
           label(context.node.name, "node-restriction.kubernetes.io/haulout-probe")}};
}

std::vector<Attempt> refused_to_service_accounts(const AttemptContext& context) {
  OwnNode somebody{std::string(nobody), std::string(nobodys_uid)};
  return {
      {"what the ServiceAccount by itself writes to Nodes", label(context.node.name, "haulout-probe.invalid/label")},
      {"how the ServiceAccount by itself evicts pods", eviction(context.pod_ns, nobody, 30)},
      {"which pods the ServiceAccount by itself evicts", eviction(context.pod_ns, context.pod_name, std::nullopt)},
      {"Leases in another node's name",
       k8s::create(slot_lease(context.ns, {std::string(nobody)}, 0, somebody, context.now), dry_run)}};
}

std::vector<RightAttempt> right_attempts(const AttemptContext& context) {
  const auto own_slot = slot_lease(context.ns, {std::string(nobody)}, 0, context.node, context.now);
  const bool leases = context.slots == SlotsChoice::lease;
  return {
      {&Rights::other_nodes, list_one(k8s::Kind<k8s::Node>::api, {}), false,
       leases ? "the credential may not list Nodes, so slots lease does not work: the agent cannot count unavailable "
                "nodes. Grant verb list on nodes, or set slots to fleetlock"
              : "the credential may not list Nodes, so the agent does not notice updates that failed on other nodes"},
      {&Rights::leases, list_one(k8s::Kind<k8s::Lease>::api, context.ns), false,
       "the credential may not list Leases, so slots lease does not work; set slots to fleetlock"},
      {&Rights::leases, k8s::create(own_slot, dry_run), false,
       "the credential may not create Leases, so slots lease does not work; set slots to fleetlock"},
      {&Rights::budgets, list_one(k8s::Kind<k8s::PodDisruptionBudget>::api, {}), false,
       "the credential may not list PodDisruptionBudgets: the agent sends one eviction at a time per namespace, and "
       "retries periodically instead of when a budget changes"},
      {&Rights::daemon_sets, k8s::get<k8s::DaemonSet>(context.pod_ns, nobody).value(), true,
       "the credential may not get DaemonSets: pods whose DaemonSet was deleted stay on the node. Grant verb get on "
       "daemonsets (API group \"apps\")"},
      {&Rights::volumes, list_one(k8s::Kind<k8s::VolumeAttachment>::api, {}), false,
       "the credential may not list VolumeAttachments: a node becomes ready while volumes may still be attached, and "
       "--serialize-volumes has no effect"},
      {&Rights::volumes, k8s::get<k8s::PersistentVolume>(nobody).value(), true,
       "the credential may not get PersistentVolumes: a node becomes ready while volumes may still be attached, and "
       "--serialize-volumes has no effect"},
      {&Rights::config_maps, k8s::get<k8s::ConfigMap>(context.ns, "haulout"), true,
       "the credential may not list ConfigMaps, so pauses of the pool or the cluster have no effect; pause single "
       "Nodes by their annotation"},
      {&Rights::events, k8s::create(event(context), dry_run), false, "the credential may not create Events"},
      {&Rights::node_status, k8s::patch_node_status(context.node.name, R"({"status":{"conditions":[]}})", dry_run),
       false, "the agent cannot patch the status of its Node, so the Node gets no condition HauloutMaintenance"},
  };
}

}  // namespace haulout::agent
