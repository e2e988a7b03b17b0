// The Kubernetes objects that Haulout reads, reduced to the fields that it uses. They are plain values and take a
// fraction of the memory of their JSON. Names and meanings are those of the API. An absent field and zero are the same
// unless the field is optional. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/label_selector.hpp"
#include "retry/clock.hpp"

namespace haulout::k8s {

// The field manager under which the server records Haulout's writes in managedFields.
inline constexpr std::string_view field_manager = "haulout";

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
  bool operator==(const OwnerReference&) const = default;
};

enum class PodPhase { pending, running, succeeded, failed, unknown };

struct Pod {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> labels;
  // Only the annotations that Haulout reads (see kept_annotation).
  std::map<std::string, std::string> annotations;
  std::optional<OwnerReference> controller;  // the ownerReference with controller: true
  std::vector<std::string> finalizers;
  std::optional<WallTime> deletion_timestamp;  // end of the grace period, by the server's clock
  std::optional<std::int64_t> deletion_grace_seconds;
  std::string node_name;
  std::int64_t grace_seconds = 30;  // spec.terminationGracePeriodSeconds; the API's default if absent
  std::int32_t priority = 0;        // 0 if absent, as in the scheduler
  std::string priority_class;
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
  bool tolerates_unschedulable = false;  // tolerates node.kubernetes.io/unschedulable:NoSchedule
  PodPhase phase = PodPhase::pending;
  // Why the pod does not run, according to its status: the scheduler's message, or the reason for which a container
  // waits, such as ImagePullBackOff. Empty while the pod starts normally.
  std::string trouble;
  bool ready = false;                  // condition Ready is True
  bool containers_terminated = false;  // every container has terminated, and no init or ephemeral container runs
  std::optional<WallTime> start_time;
  std::optional<WallTime> created;
  // The scheduler's message while it finds no node for the pod (condition PodScheduled is False, reason Unschedulable).
  std::optional<std::string> unschedulable;

  std::string key() const { return ns + "/" + name; }
  bool finished() const { return phase == PodPhase::succeeded || phase == PodPhase::failed; }
  bool terminating() const { return deletion_timestamp.has_value(); }
  bool operator==(const Pod&) const = default;
};

// True for annotations of a Pod or a Workload that the decoder keeps.
bool kept_annotation(std::string_view key);

struct Taint {
  std::string key;
  std::string effect;
  std::optional<WallTime> time_added;
  bool operator==(const Taint&) const = default;
};

struct NodeCondition {
  std::string type;
  std::string status;  // "True", "False" or "Unknown"
  std::string reason;
  std::optional<WallTime> last_heartbeat{};
  bool operator==(const NodeCondition&) const = default;
};

// True for conditions of a Node that the decoder keeps: those that Haulout sets.
bool kept_condition(std::string_view type);

struct Node {
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;  // all annotations; those of Haulout have its prefix
  bool unschedulable = false;
  std::vector<Taint> taints;
  bool ready = false;
  std::vector<NodeCondition> conditions;  // only those that Haulout sets (see kept_condition)
  // status.nodeInfo
  std::string boot_id;
  std::string os_image;
  std::string kernel_version;
  // From metadata.managedFields: the manager that owns spec.unschedulable because it set the field last. It is
  // `field_manager` if Haulout is one of several owners. Empty if the field is not set or the server does not know the
  // manager.
  std::string unschedulable_manager;
  bool operator==(const Node&) const = default;
};

struct PodDisruptionBudget {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  std::int64_t observed_generation = 0;
  std::optional<LabelSelector> selector;  // policy/v1: absent matches nothing, empty matches everything
  std::string min_available;              // as written: "1", "50%" or empty
  std::string max_unavailable;
  bool always_allow_unhealthy = false;  // unhealthyPodEvictionPolicy: AlwaysAllow
  std::int32_t disruptions_allowed = 0;
  std::int32_t current_healthy = 0;
  std::int32_t desired_healthy = 0;
  std::int32_t expected_pods = 0;
  // Pods whose eviction the server has allowed and whose deletion the disruption controller has not seen yet: name →
  // time of the eviction. The controller counts them as deleted for two minutes.
  std::map<std::string, std::optional<WallTime>> disrupted_pods;
  std::string condition_reason;  // reason of the condition DisruptionAllowed
  std::string condition_message;
  // The tool that would undo a change of this budget: the label app.kubernetes.io/managed-by, or the release that Helm
  // records in an annotation. Empty if neither is set.
  std::string managed_by;

  std::string key() const { return ns + "/" + name; }
  bool selects(const Pod& pod) const { return pod.ns == ns && selector && selector->matches(pod.labels); }
  bool operator==(const PodDisruptionBudget&) const = default;
};

struct DaemonSet {
  std::string ns;
  std::string name;
  std::string uid;
};

// A controller of pods that can be scaled, of any kind, or its Scale: the number of pods that it should have.
struct Workload {
  std::string ns;
  std::string name;
  std::string uid;
  std::map<std::string, std::string> annotations;  // only those that Haulout reads; a Scale has none
  std::optional<OwnerReference> controller;        // for a ReplicaSet: its Deployment
  std::int32_t replicas = 1;                       // spec.replicas; the API's default if absent
  std::int32_t ready_replicas = 0;                 // status.readyReplicas; a Scale does not have it
};

// The volumes in the status of a Node that are in use or attached there: the kubelet uses them (volumesInUse), or the
// attach-detach controller of kube-controller-manager has attached them and has to detach them (volumesAttached).
struct NodeVolumes {
  std::string name;
  std::string uid;
  std::string resource_version;
  std::vector<std::string> held;  // unique names: "kubernetes.io/csi/DRIVER^HANDLE"; one name may occur twice
};
// Returns the name that kube-controller-manager gives to the VolumeAttachment of this volume on this node. Empty if it
// is not a CSI volume: other volumes have no VolumeAttachment. (k/k pkg/volume/csi/csi_attacher.go, getAttachmentName)
std::string attachment_name(std::string_view unique_name, std::string_view node);

// States that a volume is attached to a node. The volume is detached when this object is deleted, not before.
struct VolumeAttachment {
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string node_name;
  std::string attacher;                          // the CSI driver
  std::string persistent_volume;                 // its name; empty for an inline volume, which has no PersistentVolume
  std::optional<WallTime> deletion_timestamp{};  // time at which the driver was asked to detach the volume
  std::string detach_error;                      // the driver's last error from detaching
  bool attached = false;                         // status.attached: the driver has attached the volume
  std::string attach_error;                      // the driver's last error from attaching

  bool deleting() const { return deletion_timestamp.has_value(); }
  bool operator==(const VolumeAttachment&) const = default;
};

struct PersistentVolume {
  std::string name;
  std::string uid;
  // spec.claimRef: the claim to which the volume is or was bound. Empty if there never was one.
  std::string claim_ns;
  std::string claim_name;
  std::string claim_uid;  // empty if a person has written the reference and no controller has bound the volume yet
  std::string phase;      // status.phase: "Bound", "Released", …
  // Values of the label kubernetes.io/hostname of the Nodes on which the volume can be used. Empty if it is not
  // restricted by hostname.
  std::vector<std::string> hostnames;
};

struct PersistentVolumeClaim {
  std::string ns;
  std::string name;
  std::string uid;
  std::string volume_name;  // name of the PersistentVolume to which the claim is bound; empty if it is not bound
};

struct Namespace {
  std::string name;
  std::string uid;
  // Messages of the conditions that are True. Each says what keeps the namespace from being deleted.
  std::vector<std::string> conditions;
  std::optional<WallTime> deletion_timestamp{};
};

// A Service, and the pods to which it sends requests.
struct Service {
  std::string ns;
  std::string name;
  std::string uid;
  std::optional<LabelSelector> selector;  // absent if the endpoints of the Service are managed by other means

  std::string key() const { return ns + "/" + name; }
  bool selects(const Pod& pod) const { return pod.ns == ns && selector && selector->matches(pod.labels); }
};

struct Lease {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> labels;
  std::string holder;  // spec.holderIdentity
  std::optional<WallTime> acquire_time;
  std::optional<WallTime> renew_time;
  std::optional<OwnerReference> owner;  // the first of its ownerReferences
  std::size_t owners = 0;               // number of its ownerReferences; not sent

  std::string key() const { return ns + "/" + name; }
  bool operator==(const Lease&) const = default;
};

struct ConfigMap {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> data;
  bool operator==(const ConfigMap&) const = default;
};

// An Event (events.k8s.io/v1) about a Node. Reason, action, instance and note are cut to the lengths that the API
// accepts.
struct NodeEvent {
  enum class Type { normal, warning };

  std::string ns = "default";  // the convention for Nodes
  std::string name;            // unique in its namespace; usable again when the Event has expired, one hour later
  std::string node;
  std::string node_uid;  // without it, `kubectl describe node` does not find the Event
  Type type = Type::normal;
  std::string reason;  // CamelCase, as is `action`
  std::string action;
  std::string note;
  std::string reporting_controller;  // for example "haulout.dev/agent"
  std::string reporting_instance;
  WallTime event_time;
};

// The identity under which the server sees this client. Node and pod are known if the token is bound to a pod.
struct Self {
  std::string username;
  std::vector<std::string> groups;
  std::string node_name;
  std::string node_uid;
  std::string pod_name;
  std::string pod_uid;
  std::string credential_id{};  // the credential as in the audit log: "JTI=…", "X509SHA256=…"
  bool operator==(const Self&) const = default;
};

// Metadata of a list.
struct ListMeta {
  std::string resource_version;
  std::string continue_token;
};

template <class T>
struct List {
  ListMeta meta;
  std::vector<T> items;
};

// Type of a watch event.
enum class WatchEventType { added, modified, deleted, bookmark, error };

}  // namespace haulout::k8s
