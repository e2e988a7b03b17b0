// The report of a drain: its outcome, and what happened to each pod and volume. Plain data; the callers convert it to
// text, JSON and exit codes. Reasons are CamelCase words that stay the same between versions. Messages are for people.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "placement/pod_fit.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::drain {

// What a diagnosis concerns. Without pods and volumes it concerns the node as a whole.
struct Scope {
  // UIDs of the pods that wait or stay because of the diagnosed condition, or that the advice is about; and the names
  // of the VolumeAttachments of which the same is true.
  std::vector<std::string> pods{};
  std::vector<std::string> volumes{};
  bool holds = true;  // the condition keeps the drain from ending; false: the diagnosis is only advice
  bool operator==(const Scope&) const = default;
};

// A condition that holds now, as input of a DiagnosisBoard: it becomes a diagnosis when it has held for long enough.
struct DiagnosisFact {
  std::string code;
  std::string subject;  // "PodDisruptionBudget shop/web", "pod shop/web-0", "node n1"
  std::string message;  // what happens, why, and the remedy
  Duration hold{};      // how long the condition must hold before the diagnosis is raised
  Scope scope{};
};

// A hold time that is long enough for a controller to do its work, and short enough to raise the diagnosis within 30 s.
inline constexpr Duration controller_hold = std::chrono::seconds(15);
// For conditions that usually end without help, such as the start of a replacement. The longest hold time with which
// the diagnosis is still raised within 30 s.
inline constexpr Duration passing_hold = std::chrono::seconds(25);

enum class Outcome {
  drained,    // only skipped pods are left; dry run: nothing is known that prevents an eviction
  blocked,    // the deadline or the volume limit passed before it was drained; dry run: a pod could not be evicted
  refused,    // policy forbids the drain; nothing was changed
  cancelled,  // the caller cancelled the drain
  node_gone,  // the Node was deleted, or replaced by another Node of the same name
  failed,     // the drain could not be carried out: connection, permission, an invalid answer, or evictions rejected
};

enum class PodOutcome {
  planned,      // not tried yet, or dry run
  skipped,      // deliberately left on the node
  refused,      // policy forbids the drain because of this pod
  waiting,      // parked; `reason` says why
  terminating,  // evicted or deleted, but the object still exists
  evicted,      // deleted after an eviction by this drain
  gone,         // deleted without an eviction by this drain
};

// What policy decides about a pod: the action of the filters (pod_filter.hpp).
enum class Verdict { evict, skip, refuse, park };

// What happened to one pod.
struct PodReport {
  std::string ns;
  std::string name;
  std::string uid;
  std::string controller;  // "ReplicaSet/web-6d4b9"; empty if the pod has none
  Verdict verdict = Verdict::evict;
  PodOutcome outcome = PodOutcome::planned;
  std::string reason;  // why it has this action or waits: "DaemonSetManaged", "BlockedByBudget", …
  std::string message;
  std::uint32_t attempts = 0;          // number of eviction requests sent
  std::optional<WallTime> evicted_at;  // when the server accepted the eviction
  std::optional<WallTime> vanished_at;
  std::string key() const { return ns + "/" + name; }
};

enum class VolumeOutcome {
  unclear,        // it is not known yet which pods use it
  in_use,         // used by pods that have yet to leave
  kept,           // used by a pod that stays on the node; the drain does not wait for it
  detaching,      // no pod uses it any more, but its VolumeAttachment exists; the drain waits for it
  detached,       // its VolumeAttachment was deleted
  leaked,         // no pod of the node was seen to use it; the drain does not wait for it
  inline_volume,  // no object says which pods use it; the drain does not wait for it
};

// Whether a volume that was detached from this node is attached to another node. No outcome of a drain depends on it
// (drain/reattach.hpp).
enum class Reattach {
  // The drain does not find out: there is no reattach limit, the claim of the volume is not known, no controller
  // replaces the pod that used the volume, or the volume was not detached.
  none,
  waiting,   // the drain waits until another node has attached it
  attached,  // another node has attached it
  // No other node has a VolumeAttachment for it, or a pod of this node uses it again; the drain does not wait any more.
  unclaimed,
  late,  // the limit passed first; the drain does not wait any more
};

// One VolumeAttachment of the node.
struct VolumeReport {
  std::string volume;      // name of the PersistentVolume; empty for an inline volume
  std::string claim;       // "shop/data-db-0"; empty if it is unknown or there is none
  std::string driver;      // name of the CSI driver
  std::string attachment;  // name of the VolumeAttachment
  VolumeOutcome outcome = VolumeOutcome::unclear;
  // While detaching: which step is missing, or the error of the driver. When detached: why no other node has attached
  // it yet, and why the drain waits for that or does not wait.
  std::string message;
  std::optional<WallTime> unused_at;  // when the drain saw that no pod used it any more
  std::optional<WallTime> detached_at;
  Reattach reattach = Reattach::none;
  std::string attached_to;  // the other Node that has attached it; empty if there is none

  // Returns a name for messages: "volume pv-data (claim shop/data)".
  std::string text() const;
};

// Whether the node was cordoned before the drain, and at its end.
struct CordonReport {
  bool before = false;
  bool after = false;
  // Who has cordoned the node, at the end: "haulout" (the Node has the mark of this or an earlier run), "other" (a
  // person or another tool), "" (the node is not cordoned).
  std::string owner;
  bool known = true;  // false: the answer to a change of the cordon was lost, so it may or may not have taken effect
};

// A condition that keeps the drain from ending, or of which a person should know.
struct Diagnosis {
  std::string code;     // "BudgetNeverAllows", …
  std::string subject;  // "PodDisruptionBudget shop/web", "pod shop/web-0", "node n1"
  std::string message;  // what happens, why, and the remedy
  WallTime since{};
  Scope scope{};
  bool operator==(const Diagnosis&) const = default;
};

// Something in the cluster that refers to a node, and that must be gone before its Node may be deleted, or should be
// gone some time after that.
struct Leftover {
  std::string what;  // "pod shop/web-0", "VolumeAttachment csi-0a1b", "Lease kube-node-lease/n1"
  std::string why;   // why it is in the way or still there, and the remedy
  bool operator==(const Leftover&) const = default;
};

enum class RetirementOutcome {
  retired,     // the Node is deleted, and nothing refers to it; dry run: nothing is known that prevents that
  kept,        // the Node was not deleted, because of `leftovers`
  replaced,    // the drained Node is gone, and another Node with its name exists, which was not touched
  unfinished,  // the Node is deleted, but `leftovers` still refer to it
  cancelled,   // the caller cancelled; `deletion` says how far it came
  failed,      // a request failed, see `error`
};

enum class NodeDeletion {
  not_sent,
  unknown,     // the request was sent, and its answer did not arrive
  done,        // the server has accepted it; finalizers may still keep the Node
  by_another,  // the Node was gone before a request was sent
};

// What happened to the Node of a drained node that was to be deleted (drain/retirement.hpp).
struct RetirementReport {
  RetirementOutcome outcome = RetirementOutcome::cancelled;
  NodeDeletion deletion = NodeDeletion::not_sent;
  std::string message;  // one sentence for people; empty if the node is retired
  std::vector<Leftover> leftovers;
  std::optional<Error> error;
  bool connection_failed = false;  // as in Report
};

struct RequestCounts {
  std::uint64_t total = 0;
  std::map<std::string, std::uint64_t> by_verb;  // get, list, watch, patch, create, delete
};

struct Report {
  std::string node;
  std::string node_uid;  // UID of the Node that was drained; empty if it was not read
  Outcome outcome = Outcome::failed;
  std::string message;  // one sentence for people
  WallTime started_at{};
  WallTime finished_at{};
  CordonReport cordon;
  std::vector<PodReport> pods;          // sorted by namespace and name
  std::vector<VolumeReport> volumes;    // attached during the drain; empty unless it waits for or serializes volumes
  std::vector<placement::PodFit> fits;  // results of the fit check before any change; empty if Options::fit is `off`
  std::vector<Diagnosis> diagnoses;     // active at the end
  RequestCounts requests;
  // Set if the outcome is `failed` because of a request. `connection_failed`: the cause is credentials, network or
  // permission, not the state of the cluster.
  std::optional<Error> error;
  bool connection_failed = false;
  // What followed the drain; unset if the Node was not to be deleted, or the node was not drained.
  std::optional<RetirementReport> retirement{};
};

std::string_view to_string(Outcome outcome);  // "drained", "node-gone", …
std::string_view to_string(PodOutcome outcome);
std::string_view to_string(Verdict verdict);
std::string_view to_string(VolumeOutcome outcome);  // "in-use", …
std::string_view to_string(Reattach reattach);
std::string_view to_string(RetirementOutcome outcome);
std::string_view to_string(NodeDeletion deletion);  // "not-sent", …

}  // namespace haulout::drain
