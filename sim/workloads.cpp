#include "sim/workloads.hpp"

#include <fmt/format.h>

#include <limits>

#include "k8s/codec.hpp"
#include "placement/room.hpp"
#include "sim/pod_lifecycle.hpp"
#include "sim/replica_sets.hpp"

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

// Adds a volume for each of the volumeClaimTemplates of a StatefulSet, with the claim of this pod. It replaces a volume
// of the same name.
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
  return object_of({{"apiVersion", owner.value("apiVersion", "")},
                    {"kind", owner.value("kind", "")},
                    {"name", name_of(owner)},
                    {"uid", uid_of(owner)},
                    {"controller", true},
                    {"blockOwnerDeletion", true}});
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

namespace {

Json daemon_tolerations() {
  Json tolerations = Json::array();
  for (const char* key : {"node.kubernetes.io/unschedulable", "node.kubernetes.io/disk-pressure",
                          "node.kubernetes.io/memory-pressure", "node.kubernetes.io/pid-pressure"})
    tolerations.push_back({{"key", key}, {"operator", "Exists"}, {"effect", "NoSchedule"}});
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
    tolerations.push_back({{"key", key}, {"operator", "Exists"}, {"effect", "NoExecute"}});
  return tolerations;
}

// Returns the time from which the pod is available: when it has been Ready for the controller's minReadySeconds.
// Returns nullopt if the pod is not Ready. A condition without a time counts as old enough.
std::optional<WallTime> available_from(const Json& pod, const Json& controller) {
  if (!pod_ready(pod)) return std::nullopt;
  const auto ready_since = k8s::parse_time(text(condition(pod, "Ready"), "/lastTransitionTime"));
  if (!ready_since) return WallTime();
  constexpr std::int64_t longest = std::numeric_limits<std::int32_t>::max();  // maximum of minReadySeconds in the API
  return *ready_since +
         std::chrono::seconds(std::clamp<std::int64_t>(number(controller, "/spec/minReadySeconds"), 0, longest));
}

}  // namespace

Workloads::Workloads(World& world) : world_(world), claims_(world) {
  world_.store.listen([this](const Change& change) { on_change(change); });
}

void Workloads::on_change(const Change& change) {
  const std::string& resource = change.key.resource;
  if (resource == "replicasets" || resource == "statefulsets" || resource == "daemonsets" ||
      resource == "deployments") {
    look_later(change.key);
    // A restored backup may have a ReplicaSet of a time before its Deployment was scaled.
    const Json& above = controller_of(*change.object);
    if (text(above, "/kind") == "Deployment") look_later({"deployments", change.key.ns, text(above, "/name")});
  } else if (resource == "pods") {
    claims_.note(change);
    on_pod(change);
  } else if (resource == "nodes" && change.type != ChangeType::modified) {
    for (const Object& set : world_.store.list("daemonsets")) look_later({"daemonsets", ns_of(*set), name_of(*set)});
  }
}

// Plans a look at the pod's controller. If the change has taken away the controller, plans one at the old controller,
// too. If the pod has no controller, plans one at each ReplicaSet that would adopt it.
void Workloads::on_pod(const Change& change) {
  const Json& pod = *change.object;
  const Json& owner = controller_of(pod);
  const auto look_at = [this, &change](const Json& controller) {
    const ResourceInfo* info = find_kind(text(controller, "/kind"));
    if (info) look_later({std::string(info->resource), change.key.ns, text(controller, "/name")});
  };
  look_at(owner);
  const Json none;
  const Json& before = change.before ? controller_of(*change.before) : none;
  const bool same_owner = at(before, "/uid") == at(owner, "/uid");
  // Neither the owner nor the creation of a pod changes in most of its changes.
  if (!change.before || !same_owner) remember(change.object);
  if (!same_owner) look_at(before);
  if (!owner.is_null() || change.type == ChangeType::deleted) return;
  const bool same_labels = change.before && at(*change.before, "/metadata/labels") == at(pod, "/metadata/labels");
  if (same_labels && before.is_null()) return;
  for (const Object& set : sets_that_select(world_.store, pod))
    look_later({"replicasets", change.key.ns, name_of(*set)});
}

void Workloads::resync() {
  for (const char* resource : {"deployments", "replicasets", "statefulsets", "daemonsets"})
    for (const Object& set : world_.store.list(resource)) look_later({resource, ns_of(*set), name_of(*set)});
}

void Workloads::look_later(const Key& controller) {
  if (!planned_.insert(controller).second) return;
  world_.agenda.after(world_.timing.controller_lag, [this, controller] {
    planned_.erase(controller);
    reconcile(controller);
  });
}

void Workloads::reconcile(const Key& key) {
  const Object set = world_.store.get(key);
  const Object ns = world_.store.get({"namespaces", "", key.ns});
  if (!set) claims_.forget(key);
  if (!world_.switches.workload_controllers || !set || terminating(*set) || !ns || terminating(*ns)) return;
  if (key.resource == "deployments") reconcile_deployment(key, *set);
  if (key.resource == "replicasets") reconcile_replica_set(key, set);
  if (key.resource == "statefulsets") reconcile_stateful_set(key, *set);
  if (key.resource == "daemonsets") reconcile_daemon_set(key, *set);
}

std::vector<Object> Workloads::controlled_by(const Json& controller, std::string_view resource) const {
  return world_.store.list(resource, ns_of(controller), By::controller, uid_of(controller));
}

// Remembers the newest pod of each controller, from which create_pod() copies the fields that admission adds.
void Workloads::remember(const Object& pod) {
  const std::string owner = text(controller_of(*pod), "/uid");
  if (owner.empty()) return;
  constexpr const char* created = "/metadata/creationTimestamp";
  Object& newest = newest_.try_emplace(owner, pod).first->second;
  if (text(*pod, created) > text(*newest, created)) newest = pod;
}

bool Workloads::create_pod(const Json& owner, const std::string& name, const std::string& node) {
  const Key key{std::string(find_kind(text(owner, "/kind"))->resource), ns_of(owner), name_of(owner)};
  if (world_.switches.quotas && quota_refuses_pod(world_.store, key.ns)) {
    try_again(key);
    return false;
  }
  refusals_.erase(key);
  const auto sibling = newest_.find(uid_of(owner));
  Json pod = pod_of_template(owner, sibling == newest_.end() ? Json() : *sibling->second, name);
  if (!node.empty()) {
    pod["spec"]["nodeName"] = node;
    for (Json& toleration : daemon_tolerations()) pod["spec"]["tolerations"].push_back(std::move(toleration));
  }
  world_.store.create("pods", std::move(pod));
  return true;
}

// No event tells a controller that a quota has room again. It tries again after pauses that double.
void Workloads::try_again(const Key& controller) {
  constexpr Duration first = std::chrono::milliseconds(5), longest = std::chrono::seconds(1000);
  const unsigned doublings = std::min(refusals_[controller]++, 18u);
  world_.agenda.after(std::min(longest, first * (1 << doublings)), [this, controller] { look_later(controller); });
}

// Creates the ReplicaSet of a new Deployment, and keeps the replicas of the ReplicaSet equal to the Deployment's. The
// simulation has no roll-outs: it does not scale if more than one ReplicaSet, or none, has replicas.
void Workloads::reconcile_deployment(const Key& key, const Json& deployment) {
  const std::int64_t replicas = number(deployment, "/spec/replicas", 1);
  const std::vector<Object> sets = controlled_by(deployment, "replicasets");
  std::vector<Object> in_use;
  for (const Object& set : sets)
    if (number(*set, "/spec/replicas", 1) > 0) in_use.push_back(set);
  if (in_use.size() == 1)
    world_.store.modify({"replicasets", key.ns, name_of(*in_use[0])},
                        [&](Json& next) { next["spec"]["replicas"] = replicas; });
  // A Deployment with status.observedGeneration already has ReplicaSets, even if the snapshot does not contain them. It
  // gets no new one.
  if (!sets.empty() || !at(deployment, "/status/observedGeneration").is_null()) return;
  const std::string hash = world_.store.new_uid().substr(0, 8);
  Json set = {{"metadata",
               {{"name", key.name + "-" + hash},
                {"namespace", key.ns},
                {"ownerReferences", Json::array({owner_reference(deployment)})}}},
              {"spec", {{"replicas", replicas}}}};
  for (const char* field : {"selector", "template"})
    if (const Json& value = at(at(deployment, "/spec"), fmt::format("/{}", field).c_str()); !value.is_null())
      set["spec"][field] = value;
  if (annotation(deployment, "sim.haulout.dev/template-hash") == "true")
    for (const char* labels : {"/metadata/labels", "/spec/selector/matchLabels", "/spec/template/metadata/labels"})
      set[Json::json_pointer(labels)]["pod-template-hash"] = hash;
  world_.store.create("replicasets", std::move(set));
}

void Workloads::reconcile_replica_set(const Key& key, const Object& set) {
  std::size_t count = claims_.claim_pods(set);
  const auto replicas = static_cast<std::size_t>(std::max<std::int64_t>(0, number(*set, "/spec/replicas", 1)));
  for (; count < replicas; ++count)
    if (!create_pod(*set, key.name + "-" + world_.store.new_uid().substr(0, 5), "")) return;
  // As in the real controller, a sync without an error ends the pauses after refused pods.
  refusals_.erase(key);
  if (count <= replicas) return;
  std::vector<Object> present = claims_.active_pods(*set);
  sort_for_deletion(present, related_pods(world_.store, *set), world_.wall_now());
  for (std::size_t i = 0; i < present.size() - replicas; ++i)
    delete_gracefully(world_, {"pods", key.ns, name_of(*present[i])}, std::nullopt);
}

// Creates a missing pod only after the old pod of the same name is deleted. Unless podManagementPolicy is Parallel, the
// controller creates the next ordinal only when the pod before it is available. (Budgets, ReplicaSets and DaemonSets
// count a pod as soon as it is Ready; minReadySeconds only slows their roll-outs.)
void Workloads::reconcile_stateful_set(const Key& key, const Json& set) {
  const std::int64_t replicas = number(set, "/spec/replicas", 1);
  const bool parallel = text(set, "/spec/podManagementPolicy") == "Parallel";
  // spec.ordinals.start is a 32-bit integer in the API.
  const auto first = static_cast<std::int32_t>(number(set, "/spec/ordinals/start"));
  for (std::int64_t i = 0; i < replicas; ++i) {
    const std::string name = fmt::format("{}-{}", key.name, first + i);
    const Object pod = world_.store.get({"pods", key.ns, name});
    if (!pod && !create_pod(set, name, "")) return;
    if (parallel) continue;
    const std::optional<WallTime> available = pod && !terminating(*pod) ? available_from(*pod, set) : std::nullopt;
    if (!available) return;
    if (*available > world_.wall_now())
      return world_.agenda.after(*available - world_.wall_now(), [this, key] { look_later(key); });
  }
}

void Workloads::reconcile_daemon_set(const Key& key, const Json& set) {
  std::set<std::string> served;
  for (const Object& pod : controlled_by(set, "pods")) served.insert(text(*pod, "/spec/nodeName"));
  Json pod = {{"spec", at(set, "/spec/template/spec")}};
  for (Json& toleration : daemon_tolerations()) pod["spec"]["tolerations"].push_back(std::move(toleration));
  for (const Object& node : world_.store.list("nodes")) {
    const bool chosen = !terminating(*node) && served.count(name_of(*node)) == 0 && placement::wants_node(pod, *node) &&
                        placement::tolerates_node(pod, *node);
    if (chosen && !create_pod(set, key.name + "-" + world_.store.new_uid().substr(0, 5), name_of(*node))) return;
  }
}

namespace {

constexpr std::string_view finalizer = "batch.kubernetes.io/job-tracking";

bool is_tracked(const Json& pod) {
  const Json& owner = controller_of(pod);
  if (text(owner, "/kind") != "Job" || !text(owner, "/apiVersion").starts_with("batch/")) return false;
  const Json& finalizers = at(pod, "/metadata/finalizers");
  return std::find(finalizers.begin(), finalizers.end(), finalizer) != finalizers.end();
}

// Returns true if the pod has finished, or is terminating without any grace period left.
bool has_ended(const Json& pod) {
  return pod_finished(pod) || (terminating(pod) && number(pod, "/metadata/deletionGracePeriodSeconds") == 0);
}

}  // namespace

JobTracking::JobTracking(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) {
    if (change.key.resource != "pods" || change.type == ChangeType::deleted) return;
    if (is_tracked(*change.object) && has_ended(*change.object))
      world_.agenda.after(world_.timing.controller_lag,
                          [this, key = change.key, uid = uid_of(*change.object)] { let_go(key, uid); });
  });
}

void JobTracking::let_go(const Key& key, const std::string& uid) {
  const Object pod = world_.store.get(key);
  if (!world_.switches.workload_controllers || !pod || uid_of(*pod) != uid) return;
  world_.store.modify(key, [](Json& next) {
    Json& finalizers = next["metadata"]["finalizers"];
    finalizers.erase(std::remove(finalizers.begin(), finalizers.end(), finalizer), finalizers.end());
  });
}

}  // namespace haulout::sim
