// The Kubernetes objects that Haulout reads, reduced to the fields it reads: plain values, a fraction of the memory of
// the JSON they come from. Names and meanings are the API's own. Absent and zero are the same unless a field is
// optional.
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

// Who our writes are booked under in managedFields.
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
  // Only those that Haulout reads (see kept_annotation).
  std::map<std::string, std::string> annotations;
  std::optional<OwnerReference> controller;  // the ownerReference with controller: true
  std::vector<std::string> finalizers;
  std::optional<WallTime> deletion_timestamp;  // when the grace period ends, by the server's clock
  std::optional<std::int64_t> deletion_grace_seconds;
  std::string node_name;
  std::int64_t grace_seconds = 30;  // spec.terminationGracePeriodSeconds; the API's default when absent
  std::int32_t priority = 0;        // absent counts as 0, as the scheduler does
  std::string priority_class;
  bool has_empty_dir = false;
  // Names of the PersistentVolumeClaims that it mounts, those of its generic ephemeral volumes among them.
  std::vector<std::string> claims;
  // Of them, those of its generic ephemeral volumes: they go when it goes.
  std::vector<std::string> own_claims;
  // One of its containers is a sidecar of the CSI project that talks to the API server: it provisions, attaches,
  // resizes or snapshots the volumes of others.
  bool storage_controller = false;
  // One of its containers has a port with "webhook" in its name: it serves admission webhooks.
  bool webhook_server = false;
  bool tolerates_unschedulable = false;  // tolerates node.kubernetes.io/unschedulable:NoSchedule
  PodPhase phase = PodPhase::pending;
  // Why it does not run, as far as it says: the scheduler's message, or what a container waits for, such as
  // ImagePullBackOff. Empty while it merely starts.
  std::string trouble;
  bool ready = false;                  // condition Ready is True
  bool containers_terminated = false;  // every container status says terminated
  std::optional<WallTime> start_time;
  std::optional<WallTime> created;
  // What the scheduler says while it finds no node (condition PodScheduled is False, reason Unschedulable).
  std::optional<std::string> unschedulable;

  std::string key() const { return ns + "/" + name; }
  bool finished() const { return phase == PodPhase::succeeded || phase == PodPhase::failed; }
  bool terminating() const { return deletion_timestamp.has_value(); }
  bool operator==(const Pod&) const = default;
};

// Annotations of a Pod and of a Workload that the decoder keeps.
bool kept_annotation(std::string_view key);

struct Taint {
  std::string key;
  std::string effect;
  std::optional<WallTime> time_added;
  bool operator==(const Taint&) const = default;
};

struct NodeCondition {
  std::string type;
  std::string status;  // "True", "False", "Unknown"
  std::string reason;
  std::optional<WallTime> last_heartbeat{};
  bool operator==(const NodeCondition&) const = default;
};

// Conditions of a Node that the decoder keeps: those that Haulout sets.
bool kept_condition(std::string_view type);

struct Node {
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;  // all of them: ours are found by their prefix
  bool unschedulable = false;
  std::vector<Taint> taints;
  bool ready = false;
  std::vector<NodeCondition> conditions;  // only those that Haulout sets (see kept_condition)
  // status.nodeInfo
  std::string boot_id;
  std::string os_image;
  std::string kernel_version;
  // metadata.managedFields: who set spec.unschedulable and nobody has cleared it since; `field_manager` where that is
  // us, whoever else has set it, too. Empty: not set, or the server does not know who it was.
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
  // Pods that were let go and are not seen to be deleted, by name: when. Counted as gone for two minutes.
  std::map<std::string, std::optional<WallTime>> disrupted_pods;
  std::string condition_reason;  // of condition DisruptionAllowed
  std::string condition_message;
  // Who would set it back: label app.kubernetes.io/managed-by, and the release that Helm notes. Empty: nobody says.
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

// A controller of pods that can be scaled, or its Scale: whatever its kind, how many pods it wants.
struct Workload {
  std::string ns;
  std::string name;
  std::string uid;
  std::map<std::string, std::string> annotations;  // only those that Haulout reads; a Scale has none
  std::optional<OwnerReference> controller;        // of a ReplicaSet: its Deployment
  std::int32_t replicas = 1;                       // spec.replicas; the API's default when absent
  std::int32_t ready_replicas = 0;                 // status.readyReplicas; a Scale says nothing of it
};

// The volumes that a Node's status says somebody has in hand there: its kubelet uses them (volumesInUse), or the
// attach-detach controller of kube-controller-manager has attached them and is to detach them (volumesAttached).
struct NodeVolumes {
  std::string name;
  std::string uid;
  std::string resource_version;
  std::vector<std::string> held;  // by unique name: "kubernetes.io/csi/DRIVER^HANDLE"; may be in it twice
};
// What kube-controller-manager calls the VolumeAttachment of the volume with that unique name on that node; empty: it
// is none of CSI, and has none. (k/k pkg/volume/csi/csi_attacher.go, getAttachmentName)
std::string attachment_name(std::string_view unique_name, std::string_view node);

// That a volume is attached to a node. It is detached when this object has gone, not before.
struct VolumeAttachment {
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string node_name;
  std::string attacher;                          // the CSI driver
  std::string persistent_volume;                 // its name; empty: an inline volume, which no object stands for
  std::optional<WallTime> deletion_timestamp{};  // since when the driver has been asked to detach it
  std::string detach_error;                      // what the driver last said against it
  bool attached = false;                         // status.attached: the driver has done it
  std::string attach_error;                      // what the driver last said against that

  bool deleting() const { return deletion_timestamp.has_value(); }
  bool operator==(const VolumeAttachment&) const = default;
};

struct PersistentVolume {
  std::string name;
  std::string uid;
  // spec.claimRef: the claim that it is bound to, or was; empty when there never was one.
  std::string claim_ns;
  std::string claim_name;
  std::string claim_uid;  // empty while nobody but a person has written the reference
  std::string phase;      // status.phase: "Bound", "Released", …
  // The values of the label kubernetes.io/hostname on Nodes that it can be used on; empty: not bound that way.
  std::vector<std::string> hostnames;
};

struct PersistentVolumeClaim {
  std::string ns;
  std::string name;
  std::string uid;
  std::string volume_name;  // the PersistentVolume that it is bound to; empty: none yet
};

struct Namespace {
  std::string name;
  std::string uid;
  std::vector<std::string> conditions;  // messages of those that are True: all are about what keeps it from going
  std::optional<WallTime> deletion_timestamp{};
};

// Whose requests go to which pods.
struct Service {
  std::string ns;
  std::string name;
  std::string uid;
  std::optional<LabelSelector> selector;  // absent: whoever made it says by other means where they go

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
  std::size_t owners = 0;               // how many it has; not sent

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

// An Event (events.k8s.io/v1) about a Node. Reason, action, instance and note are cut to what the API takes.
struct NodeEvent {
  enum class Type { normal, warning };

  std::string ns = "default";  // the convention for Nodes
  std::string name;            // unique in its namespace; an hour later it may be taken again
  std::string node;
  std::string node_uid;  // an Event without it is not found by `kubectl describe node`
  Type type = Type::normal;
  std::string reason;  // CamelCase, as the next one
  std::string action;
  std::string note;
  std::string reporting_controller;  // "haulout.dev/agent"
  std::string reporting_instance;
  WallTime event_time;
};

// Who the server takes us for. Node and pod are known when our token is bound to a pod.
struct Self {
  std::string username;
  std::vector<std::string> groups;
  std::string node_name;
  std::string node_uid;
  std::string pod_name;
  std::string pod_uid;
  std::string credential_id{};  // as the audit log names the credential: "JTI=…", "X509SHA256=…"
  bool operator==(const Self&) const = default;
};

// What a list says of itself.
struct ListMeta {
  std::string resource_version;
  std::string continue_token;
};

template <class T>
struct List {
  ListMeta meta;
  std::vector<T> items;
};

// One line of a watch, its object not yet decoded into a type.
enum class WatchEventType { added, modified, deleted, bookmark, error };

}  // namespace haulout::k8s
