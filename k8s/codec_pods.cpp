#include "k8s/codec.hpp"
#include "k8s/codec_objects.hpp"

namespace haulout::k8s::codec {
namespace {

constexpr std::string_view unschedulable_taint = "node.kubernetes.io/unschedulable";

PodPhase phase_of(const std::string& text) {
  if (text.empty() || text == "Pending") return PodPhase::pending;
  if (text == "Running") return PodPhase::running;
  if (text == "Succeeded") return PodPhase::succeeded;
  if (text == "Failed") return PodPhase::failed;
  return PodPhase::unknown;
}

// True if the toleration tolerates the taint node.kubernetes.io/unschedulable:NoSchedule. The taint has no value, so
// Equal tolerates it only with an empty value. An empty key requires Exists.
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

// A pod of 1.5 MB can have 100,000 labels, and a node can have many such pods.
constexpr Room labels_of_pod{256, 32 * 1024};

void read_metadata(const Object& metadata, Pod& pod) {
  read_identity(metadata, pod);
  pod.labels = metadata.strings("labels", labels_of_pod);
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
    // The API names the claim of a generic ephemeral volume POD-VOLUME.
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

// Looks for the name in the image, from any registry: "registry.k8s.io/sig-storage/csi-attacher:v4.6.1".
bool is_storage_sidecar(const std::string& image) {
  for (const char* name : {"csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter"}) {
    const std::size_t found = image.find(name);
    if (found != std::string::npos && (found == 0 || image[found - 1] == '/')) return true;
  }
  return false;
}

// False for the reasons that every pod has while it starts.
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

// True if every container has terminated and no init, sidecar or ephemeral container still runs. False if there are no
// container statuses.
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

template <>
const std::vector<std::string_view>& dropped_keys<Pod>() {
  // `containers` is not dropped, because the ports of containers are read.
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

}  // namespace haulout::k8s::codec
