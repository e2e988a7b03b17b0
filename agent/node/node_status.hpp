// What the agent shows on its Node: labels, message and record. All of them are written by one merge patch that is
// guarded by resourceVersion. Pure.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "agent/node/record.hpp"
#include "agent/ports/backend.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {

inline constexpr std::string_view reason_label = "haulout.dev/reason";
inline constexpr std::string_view reboot_required_label = "haulout.dev/reboot-required";
// Present while the record has failed versions (Record::failed_versions): agents select Nodes by it. Its value is the
// last of them, for people.
inline constexpr std::string_view failed_version_label = "haulout.dev/failed-version";
// The labels that show the status of an agent.
inline constexpr std::array status_labels{state_label, reason_label, reboot_required_label, failed_version_label};
inline constexpr std::string_view message_annotation = "haulout.dev/message";
// The author that the agent writes into the mark of its cordon.
inline constexpr const char* cordoned_by = "agent";
// Written by people: "reboot" requests a reboot even if the back end needs none, "reboot at 2026-12-24T22:00:00Z"
// requests it for that time, and "; why" at the end adds the reason.
inline constexpr std::string_view request_annotation = "haulout.dev/request";

// The state of a node and why it is in that state, as a reason for the label and as a message for people.
struct Status {
  State state = State::unknown;
  std::string reason{};   // CamelCase; empty if nothing delays the node
  std::string message{};  // one sentence
  WallTime since{};       // when the node entered the state
  bool judged = false;    // the outcome of this update was already reported
  bool operator==(const Status&) const = default;
};

// Returns the text of the record on a Node, or an empty string if there is none.
std::string shown_record(const k8s::Node& node);
// Returns the record on a Node, or nothing if there is none.
std::optional<Record> record_of(const k8s::Node& node);

// Returns the last status that was written to a Node: the reason and the message that it shows, the rest from `record`.
Status shown_status(const k8s::Node& node, const Record& record);

// Returns the time from which a person wants this node to be rebooted: WallTime::min() for a request without a time;
// nothing if there is no request, or one that cannot be read.
std::optional<WallTime> reboot_request(const k8s::Node& node);
// Returns a sentence about a value of the request annotation that cannot be read, with the way out; nothing if it can
// be read, or is empty.
std::optional<std::string> unreadable_request(const k8s::Node& node);
// Returns the value of the annotation that requests a reboot, without a reason.
std::string written_request(std::optional<WallTime> at);
// Returns the value of the request annotation that a boot of the machine has served; empty if it has served none. Any
// boot serves a request without a time. A request for a time is served only by a reboot of the agent that was begun for
// it: the time of another boot is not known.
std::string served_request(const k8s::Node& node, bool begun_for_it, WallTime now);
// Returns true if a person has requested a reboot of this node, and the time of the request has come.
bool reboot_requested(const k8s::Node& node, WallTime now);

// Returns the patch that makes the Node show these values, or nothing if it shows them already. The patch is guarded by
// the Node's resourceVersion. It keeps a record that this version cannot read, because a newer version may read it. It
// also keeps a pool label that differs from the pool in the Node's record: another client has set it. `served` is the
// value of the request annotation that a reboot has served; empty if none has. The patch removes it, but no request
// that a person has written since. `encoded` is the text of the record.
std::optional<std::string> status_patch(const k8s::Node& node, const Record& record, const std::string& encoded,
                                        const Status& status, Need need, std::string_view served = {});

// `exclude_patch` returns the patch that excludes the node from external load balancers, or that removes the exclusion.
// It returns nothing if no change is necessary, or if another author has set the label. The patch is guarded by the
// Node's resourceVersion.
inline constexpr std::string_view exclude_label = "node.kubernetes.io/exclude-from-external-load-balancers";
inline constexpr std::string_view exclude_value = "haulout";
std::optional<std::string> exclude_patch(const k8s::Node& node, bool exclude);

// The annotations by which the agent asks autoscalers to leave a node alone during its update, and the value that they
// get. With the first one the cluster autoscaler does not scale the node down (its FAQ, "How can I prevent Cluster
// Autoscaler from scaling down a particular node?"). With the second one Karpenter does not disrupt the node
// voluntarily ("Node-Level Controls"). A drained node is empty, so it would be the first one that they choose.
inline constexpr std::array<std::string_view, 2> autoscaler_annotations{
    "cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt"};
inline constexpr std::string_view autoscaler_value = "true";
// The mark is on the Node from the first write of these annotations until they are taken back, the time of the hold. It
// names those that the agent has set, separated by commas, or is "none". An annotation that has vanished or has another
// value leaves the mark, and is not set again in this hold. What the mark does not name is never removed.
inline constexpr std::string_view autoscaler_mark = "haulout.dev/held-autoscalers";
// Returns what must be in force on the Node of this record. `yes`: the hold. `no`: no hold. `keep`: unknown, because
// the record cannot be read. With `wanted` the hold lasts while the node has its slot; for a degraded node, while its
// cordon is not taken back.
Duty hold_duty(const Record& record, bool wanted);
// Returns the patch that begins the hold, brings its mark up to date, or ends it. Returns nothing if no change is
// necessary. It sets only annotations that the Node does not have. Guarded by the Node's resourceVersion, and not a
// part of status_patch(): an admission policy may refuse these annotations, and must not keep the record from being
// written.
std::optional<std::string> hold_patch(const k8s::Node& node, Duty duty);

// Returns true from the time at which the agent is about to cordon the node until it has uncordoned it, and for a
// record that cannot be decoded.
bool in_maintenance(const Record& record);

// Returns the patch that removes labels, message, record and hook ticket, or nothing if there are none. It removes the
// pool label only if the record names the same pool. It does not remove what people write. Guarded by the Node's
// resourceVersion.
std::optional<std::string> no_status_patch(const k8s::Node& node);

}  // namespace haulout::agent
