#include "k8s/codec_objects.hpp"

#include <algorithm>

#include "k8s/codec.hpp"

namespace haulout::k8s::codec {
namespace {

constexpr std::string_view unschedulable_taint = "node.kubernetes.io/unschedulable";

bool condition_true(const Object& status, std::string_view type) {
  bool found = false;
  status.each("conditions", [&](const Object& condition) {
    if (condition.string("type") == type) found = condition.string("status") == "True";
  });
  return found;
}

PodPhase phase_of(const std::string& text) {
  if (text.empty() || text == "Pending") return PodPhase::pending;
  if (text == "Running") return PodPhase::running;
  if (text == "Succeeded") return PodPhase::succeeded;
  if (text == "Failed") return PodPhase::failed;
  return PodPhase::unknown;
}

// The taint has no value, so Equal tolerates it only with an empty one; an empty key needs Exists.
bool tolerates_unschedulable(const Object& toleration) {
  const auto effect = toleration.string("effect");
  if (!effect.empty() && effect != "NoSchedule") return false;
  const auto op = toleration.string("operator");
  const bool exists = op == "Exists";
  const auto key = toleration.string("key");
  if (key.empty()) return exists;
  if (key != unschedulable_taint) return false;
  return exists || ((op.empty() || op == "Equal") && toleration.string("value").empty());
}

OwnerReference read_owner(const Object& owner) {
  return {owner.string("apiVersion"), owner.string("kind"), owner.string("name"), owner.string("uid"),
          owner.boolean("controller")};
}

// The API server lets no other in.
bool is_complete(const OwnerReference& owner) {
  return !owner.api_version.empty() && !owner.kind.empty() && !owner.name.empty() && !owner.uid.empty();
}

void read_metadata(const Object& metadata, Pod& pod) {
  read_identity(metadata, pod);
  pod.labels = metadata.strings("labels");
  metadata.members("annotations", [&](std::string_view key, const Json& value) {
    const auto* text = value.if_string();
    if (text && kept_annotation(key)) pod.annotations.emplace(key, std::string_view(text->data(), text->size()));
  });
  metadata.each("ownerReferences", [&](const Object& owner) {
    if (!owner.boolean("controller")) return;
    if (auto controller = read_owner(owner); is_complete(controller)) pod.controller = std::move(controller);
  });
  pod.finalizers = metadata.string_list("finalizers");
  pod.deletion_timestamp = metadata.time("deletionTimestamp");
  pod.deletion_grace_seconds = metadata.integer("deletionGracePeriodSeconds");
  pod.created = metadata.time("creationTimestamp");
}

void read_spec(const Object& spec, Pod& pod) {
  pod.node_name = spec.string("nodeName");
  pod.grace_seconds = spec.integer("terminationGracePeriodSeconds").value_or(Pod().grace_seconds);
  pod.priority = spec.integer32("priority");
  pod.priority_class = spec.string("priorityClassName");
  spec.each("volumes", [&](const Object& volume) {
    pod.has_empty_dir |= volume.has("emptyDir");
    if (auto claim = volume.object("persistentVolumeClaim").string("claimName"); !claim.empty())
      pod.claims.push_back(std::move(claim));
    // The API's rule for the claim of a generic ephemeral volume.
    if (volume.has("ephemeral")) pod.own_claims.push_back(pod.name + "-" + volume.string("name"));
  });
  pod.claims.insert(pod.claims.end(), pod.own_claims.begin(), pod.own_claims.end());
  spec.each("containers", [&](const Object& container) {
    container.each("ports", [&](const Object& port) {
      pod.webhook_server |= port.string("name").find("webhook") != std::string::npos;
    });
  });
  spec.each("tolerations",
            [&](const Object& toleration) { pod.tolerates_unschedulable |= tolerates_unschedulable(toleration); });
}

// By the image, whatever registry it comes from: "registry.k8s.io/sig-storage/csi-attacher:v4.6.1".
bool is_storage_sidecar(const std::string& image) {
  for (const char* name : {"csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter"}) {
    const std::size_t found = image.find(name);
    if (found != std::string::npos && (found == 0 || image[found - 1] == '/')) return true;
  }
  return false;
}

// What every pod goes through when it starts says nothing.
bool tells_trouble(const std::string& reason) {
  return !reason.empty() && reason != "ContainerCreating" && reason != "PodInitializing";
}

std::string read_trouble(const Object& status) {
  std::string trouble;
  status.each("conditions", [&](const Object& condition) {
    if (condition.string("type") == "PodScheduled" && condition.string("status") == "False")
      trouble = condition.string("reason") + ": " + condition.string("message");
  });
  for (const char* containers : {"initContainerStatuses", "containerStatuses"})
    status.each(containers, [&](const Object& container) {
      auto reason = container.object("state").object("waiting").string("reason");
      if (trouble.empty() && tells_trouble(reason)) trouble = std::move(reason);
    });
  return trouble;
}

// Terminated: every container has ended, and no init, sidecar or ephemeral container still runs.
bool containers_terminated(const Object& status) {
  bool any = false;
  bool ended = true;
  status.each("containerStatuses", [&](const Object& container) {
    any = true;
    ended &= container.object("state").has("terminated");
  });
  for (const char* others : {"initContainerStatuses", "ephemeralContainerStatuses"}) {
    status.each(others, [&](const Object& container) { ended &= !container.object("state").has("running"); });
  }
  return any && ended;
}

std::optional<std::string> read_unschedulable(const Object& status) {
  std::optional<std::string> message;
  status.each("conditions", [&](const Object& condition) {
    if (condition.string("type") == "PodScheduled" && condition.string("status") == "False" &&
        condition.string("reason") == "Unschedulable")
      message = condition.string("message");
  });
  return message;
}

LabelSelector::Operator operator_of(const std::string& text, bool& known) {
  using Operator = LabelSelector::Operator;
  if (text == "In") return Operator::in;
  if (text == "NotIn") return Operator::not_in;
  if (text == "Exists") return Operator::exists;
  known = known && text == "DoesNotExist";
  return Operator::does_not_exist;
}

// A selector with an operator that does not exist selects nothing: the eviction API skips such a budget, too.
std::optional<LabelSelector> read_selector(const Object& spec) {
  if (!spec.has("selector")) return std::nullopt;
  const auto selector = spec.object("selector");
  std::vector<LabelSelector::Requirement> requirements;
  bool known = true;
  for (auto& [key, value] : selector.strings("matchLabels")) {
    requirements.push_back({key, LabelSelector::Operator::in, {value}});
  }
  selector.each("matchExpressions", [&](const Object& expression) {
    const auto op = operator_of(expression.string("operator"), known);
    requirements.push_back({expression.string("key"), op, expression.string_list("values")});
  });
  if (!known) return std::nullopt;
  return LabelSelector(std::move(requirements));
}

// Under these names the server books whom it has forgotten, or never knew (apimachinery, util/managedfields/internal:
// capmanagers.go, skipnonapplied.go).
bool is_nobody(std::string_view manager) {
  return manager == "ancient-changes" || manager == "before-first-apply";
}

// Ours, else the newest that owns spec.unschedulable. Others own it beside us when they apply what is set already.
std::string read_unschedulable_manager(const Object& metadata) {
  std::string manager;
  std::optional<WallTime> newest;
  metadata.each("managedFields", [&](const Object& entry) {
    if (!entry.object("fieldsV1").object("f:spec").has("f:unschedulable")) return;
    auto name = entry.string("manager");
    if (is_nobody(name) || manager == field_manager) return;
    const auto time = entry.time("time");
    const bool older = !manager.empty() && newest && (!time || *time < *newest);
    if (older && name != field_manager) return;
    manager = std::move(name);
    newest = time;
  });
  return manager;
}

}  // namespace

void read(const Object& json, Pod& pod) {
  read_metadata(json.object("metadata"), pod);
  read_spec(json.object("spec"), pod);
  const auto status = json.object("status");
  pod.phase = phase_of(status.string("phase"));
  pod.ready = condition_true(status, "Ready");
  pod.unschedulable = read_unschedulable(status);
  pod.start_time = status.time("startTime");
  pod.containers_terminated = containers_terminated(status);
  status.each("containerStatuses", [&](const Object& container) {
    pod.storage_controller |= is_storage_sidecar(container.string("image"));
  });
  if (!pod.ready) pod.trouble = read_trouble(status);
}

void read(const Object& json, Node& node) {
  const auto metadata = json.object("metadata");
  read_identity(metadata, node);
  node.labels = metadata.strings("labels");
  node.annotations = metadata.strings("annotations");
  node.unschedulable_manager = read_unschedulable_manager(metadata);
  const auto spec = json.object("spec");
  node.unschedulable = spec.boolean("unschedulable");
  spec.each("taints", [&](const Object& taint) {
    node.taints.push_back({taint.string("key"), taint.string("effect"), taint.time("timeAdded")});
  });
  const auto status = json.object("status");
  node.ready = condition_true(status, "Ready");
  status.each("conditions", [&](const Object& condition) {
    auto type = condition.string("type");
    if (!kept_condition(type)) return;
    node.conditions.push_back({std::move(type), condition.string("status"), condition.string("reason")});
  });
  const auto info = status.object("nodeInfo");
  node.boot_id = info.string("bootID");
  node.os_image = info.string("osImage");
  node.kernel_version = info.string("kernelVersion");
}

void read(const Object& json, PodDisruptionBudget& pdb) {
  const auto metadata = json.object("metadata");
  read_identity(metadata, pdb);
  pdb.generation = metadata.integer("generation").value_or(0);
  const auto spec = json.object("spec");
  pdb.selector = read_selector(spec);
  pdb.min_available = spec.int_or_string("minAvailable");
  pdb.max_unavailable = spec.int_or_string("maxUnavailable");
  pdb.always_allow_unhealthy = spec.string("unhealthyPodEvictionPolicy") == "AlwaysAllow";
  const auto status = json.object("status");
  pdb.observed_generation = status.integer("observedGeneration").value_or(0);
  pdb.disruptions_allowed = status.integer32("disruptionsAllowed");
  pdb.current_healthy = status.integer32("currentHealthy");
  pdb.desired_healthy = status.integer32("desiredHealthy");
  pdb.expected_pods = status.integer32("expectedPods");
  status.members("disruptedPods", [&](std::string_view name, const Json& since) {
    const auto* text = since.if_string();
    const auto when = text ? parse_time({text->data(), text->size()}) : Result<WallTime>(WallTime{});
    pdb.disrupted_pods.emplace(name, text && when ? std::optional(*when) : std::nullopt);
  });
  status.each("conditions", [&](const Object& condition) {
    if (condition.string("type") != "DisruptionAllowed") return;
    pdb.condition_reason = condition.string("reason");
    pdb.condition_message = condition.string("message");
  });
}

void read(const Object& json, DaemonSet& daemon_set) {
  const auto metadata = json.object("metadata");
  read_identity(metadata, daemon_set);
}

void read(const Object& json, Lease& lease) {
  const auto metadata = json.object("metadata");
  read_identity(metadata, lease);
  lease.labels = metadata.strings("labels");
  metadata.each("ownerReferences", [&](const Object& owner) {
    if (lease.owners++ == 0) lease.owner = read_owner(owner);
  });
  const auto spec = json.object("spec");
  lease.holder = spec.string("holderIdentity");
  lease.acquire_time = spec.time("acquireTime");
  lease.renew_time = spec.time("renewTime");
}

void read(const Object& json, ConfigMap& config_map) {
  const auto metadata = json.object("metadata");
  read_identity(metadata, config_map);
  config_map.data = json.strings("data");
}

const std::vector<std::string_view>& keys_beside_identity() {
  static const std::vector<std::string_view> keys = {"managedFields",   "labels",     "annotations",
                                                     "ownerReferences", "finalizers", "spec",
                                                     "status",          "data",       "binaryData"};
  return keys;
}

template <>
const std::vector<std::string_view>& dropped_keys<Pod>() {
  // Of a container its ports are read.
  static const std::vector<std::string_view> keys = {"managedFields",
                                                     "env",
                                                     "envFrom",
                                                     "args",
                                                     "command",
                                                     "livenessProbe",
                                                     "readinessProbe",
                                                     "startupProbe",
                                                     "lifecycle",
                                                     "volumeDevices",
                                                     "resizePolicy",
                                                     "initContainers",
                                                     "ephemeralContainers",
                                                     "affinity",
                                                     "projected",
                                                     "lastState",
                                                     "securityContext",
                                                     "resources",
                                                     "allocatedResources",
                                                     "volumeMounts",
                                                     "podIPs",
                                                     "hostIPs",
                                                     "nodeSelector",
                                                     "readinessGates",
                                                     "imagePullSecrets",
                                                     "topologySpreadConstraints"};
  return keys;
}

// managedFields stay: they tell who set spec.unschedulable.
template <>
const std::vector<std::string_view>& dropped_keys<Node>() {
  static const std::vector<std::string_view> keys = {"images", "volumesInUse", "volumesAttached"};
  return keys;
}

template <>
const std::vector<std::string_view>& dropped_keys<PodDisruptionBudget>() {
  static const std::vector<std::string_view> keys = {"managedFields"};
  return keys;
}

template <>
const std::vector<std::string_view>& dropped_keys<DaemonSet>() {
  static const std::vector<std::string_view> keys = {"managedFields", "template"};
  return keys;
}

template <>
const std::vector<std::string_view>& dropped_keys<Lease>() {
  return dropped_keys<PodDisruptionBudget>();
}

template <>
const std::vector<std::string_view>& dropped_keys<ConfigMap>() {
  static const std::vector<std::string_view> keys = {"managedFields", "binaryData"};
  return keys;
}

}  // namespace haulout::k8s::codec
