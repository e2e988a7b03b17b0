#include "rehearse/world_json.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <set>

#include "agent/gates/pause.hpp"
#include "agent/hooks/hooks.hpp"
#include "agent/node/node_status.hpp"
#include "agent/node/state.hpp"
#include "base/duration.hpp"
#include "base/text.hpp"
#include "drain/cordon.hpp"
#include "drain/pod_filter.hpp"
#include "drain/reasons.hpp"
#include "k8s/codec.hpp"
#include "k8s/objects.hpp"
#include "placement/room.hpp"
#include "sim/budgets.hpp"
#include "sim/json_text.hpp"
#include "sim/volumes.hpp"

namespace haulout::rehearse {
namespace {

using sim::Json;

std::string key_of(const Json& pod) {
  return sim::ns_of(pod) + "/" + sim::name_of(pod);
}

std::string name_of_controller(const Json& pod) {
  const Json& owner = sim::controller_of(pod);
  return owner.is_null() ? "" : sim::text(owner, "/kind") + "/" + sim::text(owner, "/name");
}

bool is_starting(const Json& pod) {
  return !sim::text(pod, "/spec/nodeName").empty() && sim::text(pod, "/status/phase") == "Pending";
}

// Returns true if the pod is running, but not Ready. The snapshot does not show the cause, and such a pod does not
// become Ready in the simulation.
bool is_ailing(const Json& pod) {
  return sim::text(pod, "/status/phase") == "Running" && !sim::pod_ready(pod);
}

// Returns the simulated cluster's description of this kind; nullptr if the cluster has no controller that creates pods
// for objects of the kind.
const sim::ResourceInfo* played_kind(const std::string& kind) {
  const sim::ResourceInfo* info = sim::find_kind(kind);
  const bool played =
      info && (info->resource == "replicasets" || info->resource == "statefulsets" || info->resource == "daemonsets");
  return played ? info : nullptr;
}

// Returns true if a controller of the real cluster would replace the pod, but no simulated controller does.
bool is_of_nobody_here(const sim::Cluster& cluster, const Json& pod) {
  const Json& owner = sim::controller_of(pod);
  if (owner.is_null() || sim::is_mirror(pod) || sim::pod_finished(pod)) return false;
  const sim::ResourceInfo* info = played_kind(sim::text(owner, "/kind"));
  const sim::Object set =
      info ? cluster.store().get({std::string(info->resource), sim::ns_of(pod), sim::text(owner, "/name")}) : nullptr;
  return !set || sim::uid_of(*set) != sim::text(owner, "/uid");
}

std::vector<sim::Object> without_node(const sim::Cluster& cluster) {
  std::vector<sim::Object> pods = cluster.store().list("pods", {}, sim::By::node, "");
  std::erase_if(pods, [](const sim::Object& pod) { return !sim::waits_for_node(*pod); });
  return pods;
}

// Returns the ResourceQuotas that limit the number of pods or their resources.
std::vector<std::string> quotas_of_pods(const sim::Cluster& cluster) {
  const auto is_of_pods = [](const std::string& resource) {
    return resource == "pods" || resource == "count/pods" || resource == "cpu" || resource == "memory" ||
           ((resource.starts_with("requests.") || resource.starts_with("limits.")) && resource != "requests.storage");
  };
  std::vector<std::string> quotas;
  for (const sim::Object& quota : cluster.store().list("resourcequotas")) {
    const Json& hard = sim::at(*quota, "/spec/hard");
    bool counts = false;
    if (hard.is_object())
      for (const auto& limit : hard.items()) counts = counts || is_of_pods(limit.key());
    if (counts) quotas.push_back(key_of(*quota));
  }
  return quotas;
}

bool has_any(const Json& list, std::initializer_list<const char*> wanted) {
  return list.is_array() && std::any_of(list.begin(), list.end(), [&](const Json& entry) {
           return std::any_of(wanted.begin(), wanted.end(), [&](const char* one) { return entry == one; });
         });
}

// Returns the admission webhooks that the API server calls for evictions.
std::vector<std::string> webhooks_on_evictions(const sim::Cluster& cluster) {
  std::vector<std::string> names;
  for (const char* resource : {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"})
    for (const sim::Object& configuration : cluster.store().list(resource))
      for (const Json& webhook : sim::at(*configuration, "/webhooks"))
        if (is_asked_about_evictions(webhook)) names.push_back(sim::text(webhook, "/name"));
  return names;
}

// Time that a kubelet takes to report the end of a pod (the last status and the final delete). It reports the ends of
// its pods one after another.
constexpr Duration kubelet_report = std::chrono::milliseconds(15);
// Interval of the checks whether another node has detached a volume. Kubernetes' attach-detach controller checks ten
// times as often.
constexpr Duration attach_retry = std::chrono::seconds(1);
// Time in which controllers, scheduler and kubelets finish what was in progress when the snapshot was taken. rest_of()
// adds the times until a volume is detached and attached, and its pod is Ready.
constexpr Duration come_to_rest = std::chrono::seconds(5);

// Returns the times at which the object was created or changed.
std::vector<std::string> times_of(const Json& object) {
  std::vector<std::string> times{sim::text(object, "/metadata/creationTimestamp"),
                                 sim::text(object, "/spec/renewTime")};
  for (const Json& manager : sim::at(object, "/metadata/managedFields")) times.push_back(sim::text(manager, "/time"));
  for (const Json& condition : sim::at(object, "/status/conditions"))
    for (const char* field : {"/lastHeartbeatTime", "/lastTransitionTime", "/lastUpdateTime"})
      times.push_back(sim::text(condition, field));
  return times;
}

// Returns the time of the request to delete the object: its deletionTimestamp minus its grace period.
std::optional<WallTime> deletion_asked(const Json& object) {
  const auto end = k8s::parse_time(sim::text(object, "/metadata/deletionTimestamp"));
  if (!end) return std::nullopt;
  constexpr std::int64_t longest = 1'000'000'000;
  const std::int64_t grace = sim::number(object, "/metadata/deletionGracePeriodSeconds");
  return *end - std::chrono::seconds(std::clamp<std::int64_t>(grace, 0, longest));
}

using sim::Json;

constexpr const char* config_map = "haulout";

bool has(const Json& node, std::string_view annotation) {
  return !sim::annotation(node, std::string(annotation).c_str()).empty();
}

// Returns true if an agent, not a person, has cordoned the node. The mark of a schedulable node does not count.
bool cordoned_by_agent(const Json& node) {
  const auto decoded = k8s::decode<k8s::Node>(sim::json_text(node));
  if (!decoded || drain::cordon_owner(*decoded) != drain::CordonOwner::haulout) return false;
  const auto mark = drain::mark_of(*decoded);
  return mark && mark->by == agent::cordoned_by;
}

Json without_own_keys(const Json& node) {
  Json labels = Json::object();
  for (const std::string_view key : agent::status_labels) labels[std::string(key)] = nullptr;
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

void drop(Json& object, std::initializer_list<const char*> members) {
  if (!object.is_object()) return;
  for (const char* member : members) object.erase(member);
}

bool has_hooks(const Json& node) {
  const Json& annotations = sim::at(node, "/metadata/annotations");
  if (!annotations.is_object()) return false;
  for (const auto& [key, value] : annotations.items())
    if (key.starts_with(agent::hook_prefix)) return true;
  return false;
}

}  // namespace

bool is_asked_about_evictions(const Json& webhook) {
  const Json& rules = sim::at(webhook, "/rules");
  return rules.is_array() && std::any_of(rules.begin(), rules.end(), [](const Json& rule) {
           return has_any(sim::at(rule, "/operations"), {"CREATE", "*"}) &&
                  has_any(sim::at(rule, "/apiGroups"), {"", "*"}) &&
                  has_any(sim::at(rule, "/resources"), {"pods/eviction", "pods/*", "*/*"});
         });
}

void weigh_times(const Json& object, WallTime now, std::optional<WallTime>& newest) {
  const auto weigh = [&](std::optional<WallTime> time) {
    if (time <= now) newest = std::max(newest, time);
  };
  weigh(deletion_asked(object));
  for (const std::string& time : times_of(object))
    if (const auto parsed = k8s::parse_time(time)) weigh(*parsed);
}

void drop_unread(Json& object) {
  // Of a Node they show who has cordoned it.
  if (sim::text(object, "/kind") != "Node") drop(object["metadata"], {"managedFields"});
  if (object["metadata"].contains("annotations"))
    drop(object["metadata"]["annotations"], {"kubectl.kubernetes.io/last-applied-configuration"});
  for (const char* containers : {"/spec/containers", "/spec/initContainers", "/spec/template/spec/containers",
                                 "/spec/template/spec/initContainers"}) {
    if (!sim::at(object, containers).is_array()) continue;
    for (Json& container : object[Json::json_pointer(containers)])
      drop(container, {"env", "envFrom", "args", "command", "livenessProbe", "readinessProbe", "startupProbe",
                       "lifecycle", "volumeMounts", "volumeDevices", "securityContext"});
  }
}

std::vector<std::string> silent_nodes(const sim::Cluster& cluster) {
  std::vector<std::string> names;
  for (const sim::Object& node : cluster.store().list("nodes"))
    if (sim::text(sim::condition(*node, "Ready"), "/status") == "Unknown") names.push_back(sim::name_of(*node));
  return names;
}

std::vector<std::string> pods_of_missing_daemon_sets(const sim::Cluster& cluster) {
  std::vector<std::string> pods;
  if (!cluster.store().list("daemonsets").empty()) return pods;
  for (const sim::Object& pod : cluster.store().list("pods"))
    if (sim::text(sim::controller_of(*pod), "/kind") == "DaemonSet") pods.push_back(key_of(*pod));
  return pods;
}

void keep_expectations(sim::Cluster& cluster) {
  for (const sim::Object& budget : cluster.store().list("poddisruptionbudgets")) {
    const std::int64_t expected = sim::number(*budget, "/status/expectedPods");
    if (expected <= 0 || sim::text(sim::condition(*budget, "DisruptionAllowed"), "/reason") == "SyncFailed") continue;
    const auto pods = sim::pods_of_budget(cluster.store(), *budget);
    if (std::any_of(pods.begin(), pods.end(), [&](const auto& pod) { return is_of_nobody_here(cluster, *pod); }))
      cluster.patch("poddisruptionbudgets", sim::ns_of(*budget), sim::name_of(*budget),
                    {{"metadata", {{"annotations", {{"sim.haulout.dev/expects-pods", std::to_string(expected)}}}}}});
  }
}

Duration rest_of(const Assumptions& assumptions) {
  return come_to_rest + assumptions.detach_within + assumptions.attach_within + assumptions.ready_after;
}

sim::Timing timing_of(const Assumptions& assumptions) {
  sim::Timing timing;
  timing.pod_start = assumptions.ready_after;
  timing.kubelet_report = kubelet_report;
  if (assumptions.terminate_within) timing.termination_limit = *assumptions.terminate_within;
  timing.unmount = std::min(timing.unmount, assumptions.detach_within);
  timing.detach = assumptions.detach_within - timing.unmount;
  timing.attach = assumptions.attach_within;
  timing.attach_retry = attach_retry;
  return timing;
}

void assume_no_work_ends(std::vector<std::string>& assumed, const drain::Policy& policy, const sim::Cluster& cluster,
                         const std::set<std::string>& nodes) {
  std::vector<std::string> with_limit, without_limit;
  for (const sim::Object& object : cluster.store().list("pods")) {
    const auto pod = k8s::decode<k8s::Pod>(sim::json_text(*object));
    if (!pod || !nodes.contains(pod->node_name)) continue;
    const drain::Decision decision = drain::decide(*pod, policy, {}, {});
    if (decision.reason == reason::waiting_for_completion || decision.is_awaited)
      (decision.is_awaited ? without_limit : with_limit).push_back(pod->key());
  }
  if (!with_limit.empty())
    assumed.push_back("these pods do not finish before the time limit of their rule: " + some_of(with_limit));
  if (!without_limit.empty())
    assumed.push_back("these pods do not finish, so the drain that waits for them does not end: " +
                      some_of(without_limit));
}

void assume_silent_responders(std::vector<std::string>& assumed, const drain::Options& options, sim::Cluster& cluster,
                              const std::set<std::string>& nodes) {
  if (options.eviction_requests == drain::EvictionRequests::off) return;
  cluster.switches().eviction_requests = true;
  cluster.switches().eviction_request_controller = false;
  std::vector<std::string> asked;
  for (const sim::Object& object : cluster.store().list("pods"))
    if (!sim::at(*object, "/spec/evictionResponders").empty() && nodes.contains(sim::text(*object, "/spec/nodeName")))
      asked.push_back(key_of(*object));
  if (!asked.empty())
    assumed.push_back("the responders of these pods do not answer, so each pod waits for --eviction-request-limit: " +
                      some_of(asked));
}

std::vector<std::string> assumed_of_pods(const Assumptions& assumptions, const sim::Cluster& cluster) {
  std::vector<std::string> waiting, gated, starting, ailing, not_replaced;
  const std::vector<std::string> silent = silent_nodes(cluster);
  const auto is_on_silent_node = [&](const Json& pod) {
    return std::find(silent.begin(), silent.end(), sim::text(pod, "/spec/nodeName")) != silent.end();
  };
  for (const sim::Object& pod : cluster.store().list("pods")) {
    if (is_of_nobody_here(cluster, *pod)) not_replaced.push_back(key_of(*pod));
    if (sim::terminating(*pod)) continue;
    if (sim::waits_for_node(*pod))
      (placement::has_scheduling_gates(*pod) ? gated : waiting).push_back(key_of(*pod));
    else if (is_on_silent_node(*pod))
      continue;
    else if (is_starting(*pod))
      starting.push_back(key_of(*pod));
    else if (is_ailing(*pod))
      ailing.push_back(key_of(*pod));
  }
  std::vector<std::string> assumed{
      fmt::format("a new pod is Ready {} after it was scheduled and its volumes were attached",
                  format_whole_seconds(assumptions.ready_after)),
      "a pod terminates " + (assumptions.terminate_within
                                 ? "within " + format_whole_seconds(*assumptions.terminate_within)
                                 : "after its whole grace period, although real pods often need less")};
  if (!silent.empty())
    assumed.push_back(
        "a node whose Ready condition is Unknown has no running kubelet, so no pod ends or starts there: node " +
        some_of(silent));
  if (!waiting.empty()) assumed.push_back("pending pods are scheduled where there is capacity: " + some_of(waiting));
  if (!gated.empty()) assumed.push_back("scheduling gates are not removed from these pods: " + some_of(gated));
  if (!starting.empty()) assumed.push_back("starting pods become Ready: " + some_of(starting));
  if (!ailing.empty())
    assumed.push_back("running pods that are not Ready do not become Ready, but their replacements do: " +
                      some_of(ailing));
  const std::vector<std::string> of_daemon_sets = pods_of_missing_daemon_sets(cluster);
  if (!of_daemon_sets.empty())
    assumed.push_back(
        "no DaemonSets were read (kubectl get ds -A -o json adds them to a snapshot; reading the cluster needs the "
        "right to list them), so the DaemonSets of these pods are assumed to exist: " +
        some_of(of_daemon_sets));
  if (const std::vector<std::string> quotas = quotas_of_pods(cluster); !quotas.empty())
    assumed.push_back(
        "quotas do not block new pods, although real quotas may block them until old pods are deleted: ResourceQuota " +
        some_of(quotas));
  if (const std::vector<std::string> webhooks = webhooks_on_evictions(cluster); !webhooks.empty())
    assumed.push_back(
        "webhooks are assumed to allow every eviction, although a real one, such as KubeVirt's, may migrate the pod "
        "instead: " +
        some_of(webhooks));
  if (!not_replaced.empty())
    assumed.push_back(
        "these pods are not replaced, because their controllers are not simulated or not in the snapshot: " +
        some_of(not_replaced));
  return assumed;
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
      result.push_back({key_of(*pod), name_of_controller(*pod),
                        sim::text(sim::condition(*pod, "PodScheduled"), "/message"),
                        sim::text(*pod, "/status/nominatedNodeName")});
  return result;
}

std::optional<WallTime> last_to_go(const sim::Cluster& cluster) {
  std::optional<WallTime> last;
  for (const sim::Object& pod : cluster.store().list("pods"))
    if (const auto end = k8s::parse_time(sim::text(*pod, "/metadata/deletionTimestamp")))
      last = last ? std::max(*last, *end) : *end;
  return last;
}

std::vector<NoRoom> take_with_room_later(std::vector<NoRoom>& no_room, const sim::Cluster& cluster, WallTime now) {
  if (no_room.empty()) return {};
  placement::Room room(cluster.store().list("nodes"), placement::Room::Unstated::no_end);
  for (const sim::Object& pod : cluster.store().list("pods")) {
    const auto end = k8s::parse_time(sim::text(*pod, "/metadata/deletionTimestamp"));
    const std::string node = sim::text(*pod, "/spec/nodeName");
    if (!node.empty() && !(end && *end >= now)) room.put(pod, node);
  }
  std::set<std::string> found;
  for (const sim::Object& pod : without_node(cluster)) {
    const placement::Place place = placement::has_scheduling_gates(*pod)
                                       ? placement::Place()
                                       : room.find(*pod, {}, sim::volumes_of(cluster.store(), *pod));
    if (place.node.empty()) continue;
    room.put(pod, place.node);
    found.insert(key_of(*pod));
  }
  std::vector<NoRoom> taken;
  for (const NoRoom& pod : no_room)
    if (found.contains(pod.pod)) taken.push_back(pod);
  std::erase_if(no_room, [&](const NoRoom& pod) { return found.contains(pod.pod); });
  return taken;
}

void assume_later_room(std::vector<std::string>& assumed, const std::vector<NoRoom>& first,
                       const std::vector<NoRoom>& now) {
  std::vector<std::string> later;
  for (const NoRoom& pod : first)
    if (std::none_of(now.begin(), now.end(), [&](const NoRoom& still) { return still.pod == pod.pod; }))
      later.push_back(pod.pod);
  if (!later.empty())
    assumed.push_back("these pods find capacity only after pods that are terminating on other nodes are deleted: " +
                      some_of(later));
}

void assume_no_preemption(std::vector<std::string>& assumed, const std::vector<NoRoom>& no_room) {
  std::vector<std::string> pods;
  for (const NoRoom& pod : no_room)
    if (!pod.preempts_on.empty()) pods.push_back(pod.pod);
  if (!pods.empty())
    assumed.push_back(
        "the rehearsal preempts no pods; a real scheduler may preempt pods of lower priority to place these pods: " +
        some_of(pods));
}

std::vector<std::string> not_weighed(const sim::Cluster& cluster, const std::string& node) {
  std::vector<std::string> result;
  for (const sim::Object& pod : cluster.store().list("pods", {}, sim::By::node, node)) {
    if (sim::may_stay(*pod)) continue;
    const bool bound = sim::volumes_of(cluster.store(), *pod).size() == sim::claims_of(*pod).size();
    const std::vector<std::string> why = placement::not_weighed(*pod, bound);
    if (!why.empty()) result.push_back(key_of(*pod) + " (" + joined(why, ", ") + ")");
  }
  return result;
}

namespace {

// Returns the drivers whose volumes running pods use although the snapshot has no VolumeAttachment of the driver: their
// volumes need no attachment. Leaves out drivers with a CSIDriver, whose field attachRequired states whether they do.
std::vector<std::string> drivers_without_attaching(const sim::Cluster& cluster) {
  std::set<std::string> drivers;
  for (const sim::Object& pod : cluster.store().list("pods")) {
    if (sim::text(*pod, "/status/phase") != "Running") continue;
    for (const sim::Object& volume : sim::not_attached(cluster.store(), *pod))
      drivers.insert(sim::text(*volume, "/spec/csi/driver"));
  }
  for (const sim::Object& attachment : cluster.store().list("volumeattachments"))
    drivers.erase(sim::text(*attachment, "/spec/attacher"));
  for (const sim::Object& driver : cluster.store().list("csidrivers")) drivers.erase(sim::name_of(*driver));
  return {drivers.begin(), drivers.end()};
}

std::vector<std::string> forget_attaching(sim::Cluster& cluster) {
  std::vector<std::string> volumes;
  for (const sim::Object& attachment : cluster.store().list("volumeattachments")) {
    if (sim::terminating(*attachment) || sim::flag(*attachment, "/status/attached")) continue;
    volumes.push_back(sim::text(*attachment, "/spec/source/persistentVolumeName"));
    cluster.remove("volumeattachments", "", sim::name_of(*attachment));
  }
  return volumes;
}

}  // namespace

std::vector<std::string> prepare_volumes(sim::Cluster& cluster) {
  std::vector<std::string> assumed;
  const std::vector<std::string> drivers = drivers_without_attaching(cluster);
  for (const std::string& driver : drivers)
    cluster.create("csidrivers", {{"metadata", {{"name", driver}}}, {"spec", {{"attachRequired", false}}}});
  if (!drivers.empty())
    assumed.push_back(
        "volumes of these CSI drivers need no attachment, because running pods use them and the snapshot has no "
        "VolumeAttachment of these drivers: " +
        some_of(drivers));
  if (const auto moving = forget_attaching(cluster); !moving.empty())
    assumed.push_back(
        "volumes that are being attached count as detached, and are attached when a pod needs them: PersistentVolume " +
        some_of(moving));
  return assumed;
}

std::vector<std::string> assumed_of_volumes(const Assumptions& assumptions, const sim::Cluster& cluster,
                                            const std::set<std::string>& nodes) {
  const auto attachments = cluster.store().list("volumeattachments");
  const bool any = std::any_of(attachments.begin(), attachments.end(), [&](const sim::Object& attachment) {
    return nodes.contains(sim::text(*attachment, "/spec/nodeName"));
  });
  if (!any) return {};
  return {fmt::format("a volume is detached {} after its last pod on the node was deleted",
                      format_whole_seconds(assumptions.detach_within)),
          fmt::format("attaching a volume to another node takes {}, after the node that had it exclusively has "
                      "detached it; its pod is Ready {} after that",
                      format_whole_seconds(assumptions.attach_within), format_whole_seconds(assumptions.ready_after))};
}

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
