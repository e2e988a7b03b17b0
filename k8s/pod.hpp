// Pods: the structs, their place in the API and their decoders. Pure. A field of a wrong type makes decode<Pod> fail
// with Errc::decode, and so the whole list that contains the pod.
#pragma once

#include "k8s/kind.hpp"
#include "k8s/surge_mark.hpp"

namespace haulout::k8s {

enum class PodPhase { pending, running, succeeded, failed, unknown };

// What the guards of a drain need to know of a pod on any node: whose replica it is, and whether it serves. They follow
// the pods of whole namespaces, which can be many thousands, so nothing else of these is decoded (Kind<Replica>).
struct Replica {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> labels;
  // Only the annotations that Haulout reads (see kept_annotation).
  std::map<std::string, std::string> annotations;
  // The ownerReference with controller: true. If there is none, but a mark, the ReplicaSet of the mark: the pod still
  // is one of its replicas for everything that a drain decides.
  std::optional<OwnerReference> controller;
  bool owned = false;  // has an ownerReference with controller: true
  // The mark of a drain that has surged the pod. Absent if the mark is about another node, or if the pod has another
  // controller than the mark names.
  std::optional<SurgeMark> surge_mark;
  std::optional<WallTime> deletion_timestamp;  // end of the grace period, by the server's clock
  std::string node_name;
  PodPhase phase = PodPhase::pending;
  bool ready = false;  // condition Ready is True
  std::optional<WallTime> created;
  // The scheduler's message while it finds no node for the pod (condition PodScheduled is False, reason Unschedulable).
  std::optional<std::string> unschedulable;

  std::string key() const { return ns + "/" + name; }
  bool finished() const { return phase == PodPhase::succeeded || phase == PodPhase::failed; }
  bool terminating() const { return deletion_timestamp.has_value(); }
  bool has_template_hash() const { return labels.contains(std::string(template_hash_label)); }
  // Returns true if a drain has taken the label pod-template-hash off the pod.
  bool surged() const { return surge_mark && !has_template_hash(); }
  // Returns true if the pod has its label again, but still its mark.
  bool given_back() const { return surge_mark && !surged(); }
  bool operator==(const Replica&) const = default;
};

// A pod with all that a drain reads of the pods on its node.
struct Pod : Replica {
  std::vector<std::string> finalizers;
  std::optional<std::int64_t> deletion_grace_seconds;
  std::int64_t grace_seconds = 30;  // spec.terminationGracePeriodSeconds; the API's default if absent
  std::int32_t priority = 0;        // spec.priority; 0 if absent, as in the scheduler
  std::string priority_class;
  std::string pod_group;  // spec.schedulingGroup.podGroupName; empty if the pod belongs to no PodGroup
  // Names in spec.evictionResponders: who wants to take part in the eviction of the pod (eviction_request.hpp).
  std::vector<std::string> eviction_responders;
  bool has_empty_dir = false;
  // Names of the PersistentVolumeClaims that the pod mounts, including those of its generic ephemeral volumes.
  std::vector<std::string> claims;
  // The part of `claims` that belongs to generic ephemeral volumes. These claims are deleted with the pod.
  std::vector<std::string> own_claims;
  // True if one of its containers is a sidecar of the CSI project that talks to the API server: it provisions,
  // attaches, resizes or snapshots the volumes of other pods.
  bool storage_controller = false;
  // True if one of its containers has a port with "webhook" in its name: the pod serves admission webhooks.
  bool webhook_server = false;
  bool host_ports = false;               // one of its containers uses a port of the node
  bool tolerates_unschedulable = false;  // tolerates node.kubernetes.io/unschedulable:NoSchedule
  // Why the pod does not run, according to its status: the scheduler's message, or the reason for which a container
  // waits, such as ImagePullBackOff. Empty while the pod starts normally, and when it is Ready.
  std::string trouble;
  bool containers_terminated = false;  // every container has terminated, and no init or ephemeral container runs
  std::optional<WallTime> start_time;

  bool operator==(const Pod&) const = default;
};

namespace codec::pod {

inline constexpr std::string_view unschedulable_taint = "node.kubernetes.io/unschedulable";

inline PodPhase phase_of(const std::string& text) {
  if (text.empty() || text == "Pending") return PodPhase::pending;
  if (text == "Running") return PodPhase::running;
  if (text == "Succeeded") return PodPhase::succeeded;
  if (text == "Failed") return PodPhase::failed;
  return PodPhase::unknown;
}

// Returns true if the toleration tolerates the taint node.kubernetes.io/unschedulable:NoSchedule. The taint has no
// value, so Equal tolerates it only with an empty value. An empty key requires Exists.
inline bool tolerates_unschedulable(const Object& toleration) {
  const auto effect = toleration.string("effect");
  if (!effect.empty() && effect != "NoSchedule") return false;
  const auto op = toleration.string("operator");
  const bool exists = op == "Exists";
  const auto key = toleration.string("key");
  if (key.empty()) return exists;
  if (key != unschedulable_taint) return false;
  return exists || ((op.empty() || op == "Equal") && toleration.string("value").empty());
}

// Limits for the labels that are kept of a pod. A pod of 1.5 MB can have 100,000 labels, and a node can have many such
// pods. Further labels are dropped, so a selector may then not match.
inline constexpr Room labels_of_pod{256, 32 * 1024};

// The API allows a pod this many responders.
inline constexpr std::size_t most_responders = 10;

inline void read_metadata(const Object& metadata, Replica& pod) {
  read_identity(metadata, pod);
  pod.labels = metadata.strings("labels", labels_of_pod);
  metadata.members("annotations", [&](std::string_view key, std::optional<std::string_view> text) {
    if (text && kept_annotation(key)) pod.annotations.emplace(key, *text);
  });
  pod.controller = read_controller(metadata);
  pod.owned = pod.controller.has_value();
  pod.deletion_timestamp = metadata.time("deletionTimestamp");
  pod.created = metadata.time("creationTimestamp");
}

// Reads the mark after the rest of the pod. Anybody who may create a pod can write any mark, so one that does not fit
// the pod does not count.
inline void read_surge_mark(Replica& pod) {
  const auto found = pod.annotations.find(std::string(surge_mark_annotation));
  if (found == pod.annotations.end()) return;
  auto mark = parse_surge_mark(found->second);
  if (!mark || mark->node != pod.node_name || (pod.owned && pod.controller->uid != mark->owner_uid)) return;
  if (!pod.owned) pod.controller = OwnerReference{"apps/v1", "ReplicaSet", mark->owner, mark->owner_uid, true};
  pod.surge_mark = std::move(mark);
}

inline void read_spec(const Object& spec, Pod& pod) {
  pod.node_name = spec.string("nodeName");
  pod.grace_seconds = spec.integer("terminationGracePeriodSeconds").value_or(Pod().grace_seconds);
  pod.priority = spec.integer32("priority");
  pod.priority_class = spec.string("priorityClassName");
  pod.pod_group = spec.object("schedulingGroup").string("podGroupName");
  spec.each("evictionResponders", [&](const Object& responder) {
    if (pod.eviction_responders.size() < most_responders) pod.eviction_responders.push_back(responder.string("name"));
  });
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
      pod.host_ports |= port.integer("hostPort").value_or(0) != 0;
    });
  });
  spec.each("tolerations",
            [&](const Object& toleration) { pod.tolerates_unschedulable |= tolerates_unschedulable(toleration); });
}

// Returns true for the images of the CSI sidecars that make a pod a storage controller, from any registry:
// "registry.k8s.io/sig-storage/csi-attacher:v4.6.1".
inline bool is_storage_sidecar(const std::string& image) {
  for (const char* name : {"csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter"}) {
    const std::size_t found = image.find(name);
    if (found != std::string::npos && (found == 0 || image[found - 1] == '/')) return true;
  }
  return false;
}

// Returns false for the reasons that every pod has while it starts.
inline bool tells_trouble(const std::string& reason) {
  return !reason.empty() && reason != "ContainerCreating" && reason != "PodInitializing";
}

inline std::string read_trouble(const Object& status) {
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

// Returns true if every container has terminated and no init, sidecar or ephemeral container still runs. Returns false
// if there are no container statuses.
inline bool containers_terminated(const Object& status) {
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

inline std::optional<std::string> read_unschedulable(const Object& status) {
  std::optional<std::string> message;
  status.each("conditions", [&](const Object& condition) {
    if (condition.string("type") == "PodScheduled" && condition.string("status") == "False" &&
        condition.string("reason") == "Unschedulable")
      message = condition.string("message");
  });
  return message;
}

inline void read_state(const Object& status, Replica& pod) {
  pod.phase = phase_of(status.string("phase"));
  pod.ready = condition_true(status, "Ready");
  pod.unschedulable = read_unschedulable(status);
}

}  // namespace codec::pod

template <>
struct Kind<Replica> {
  static constexpr std::string_view name = "Pod";
  static constexpr Api api{"v1", "pods", Scope::namespaced, Names::ours, "Pod", "pods"};
  static constexpr ListBudget budget{500'000, 0, megabytes(16), kilobytes(4)};
  static constexpr std::array<std::string_view, 24> dropped = {"managedFields",
                                                               "finalizers",
                                                               "containers",
                                                               "initContainers",
                                                               "ephemeralContainers",
                                                               "volumes",
                                                               "tolerations",
                                                               "affinity",
                                                               "nodeSelector",
                                                               "topologySpreadConstraints",
                                                               "securityContext",
                                                               "imagePullSecrets",
                                                               "readinessGates",
                                                               "schedulingGates",
                                                               "resourceClaims",
                                                               "overhead",
                                                               "evictionResponders",
                                                               "containerStatuses",
                                                               "initContainerStatuses",
                                                               "ephemeralContainerStatuses",
                                                               "resources",
                                                               "allocatedResources",
                                                               "podIPs",
                                                               "hostIPs"};

  static void read(const codec::Object& json, Replica& pod) {
    codec::pod::read_metadata(json.object("metadata"), pod);
    pod.node_name = json.object("spec").string("nodeName");
    codec::pod::read_surge_mark(pod);
    codec::pod::read_state(json.object("status"), pod);
  }
  static std::size_t text_in(const Replica& pod) { return text_of(pod.labels) + text_of(pod.annotations); }
};

template <>
struct Kind<Pod> {
  static constexpr std::string_view name = Kind<Replica>::name;
  static constexpr Api api = Kind<Replica>::api;
  static constexpr ListBudget budget = Kind<Replica>::budget;
  // `containers` is not dropped, because the ports of containers are read.
  static constexpr std::array<std::string_view, 26> dropped = {"managedFields",
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

  static void read(const codec::Object& json, Pod& pod) {
    const auto metadata = json.object("metadata");
    codec::pod::read_metadata(metadata, pod);
    pod.finalizers = metadata.string_list("finalizers");
    pod.deletion_grace_seconds = metadata.integer("deletionGracePeriodSeconds");
    codec::pod::read_spec(json.object("spec"), pod);
    codec::pod::read_surge_mark(pod);
    const auto status = json.object("status");
    codec::pod::read_state(status, pod);
    pod.start_time = status.time("startTime");
    pod.containers_terminated = codec::pod::containers_terminated(status);
    status.each("containerStatuses", [&](const codec::Object& container) {
      pod.storage_controller |= codec::pod::is_storage_sidecar(container.string("image"));
    });
    if (!pod.ready) pod.trouble = codec::pod::read_trouble(status);
  }
  static std::size_t text_in(const Pod& pod) {
    std::size_t bytes = Kind<Replica>::text_in(pod) + pod.trouble.size();
    for (const std::string& finalizer : pod.finalizers) bytes += finalizer.size();
    for (const std::string& responder : pod.eviction_responders) bytes += responder.size();
    return bytes;
  }
};

}  // namespace haulout::k8s
