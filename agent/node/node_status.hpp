// What the agent shows on its Node: labels, message and record, in one guarded merge patch. Pure.
#pragma once

#include <optional>
#include <string>

#include "agent/node/node_labels.hpp"
#include "agent/node/record.hpp"
#include "agent/ports/backend.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {

inline constexpr std::string_view reason_label = "haulout.dev/reason";
inline constexpr std::string_view reboot_required_label = "haulout.dev/reboot-required";
inline constexpr std::string_view message_annotation = "haulout.dev/message";
// Who, in the mark of the agent's cordons.
inline constexpr const char* cordoned_by = "agent";
// Written by people: "reboot" asks for one whatever the back end says; "reboot; why" says why, too.
inline constexpr std::string_view request_annotation = "haulout.dev/request";

// Why a node is where it is, in the words of a label and in those of a person.
struct Status {
  State state = State::unknown;
  std::string reason{};   // CamelCase; empty: nothing stands in its way
  std::string message{};  // one sentence
  WallTime since{};       // when the state was entered
  bool judged = false;    // it was told before how the update ended that this state belongs to
  bool operator==(const Status&) const = default;
};

// The text of the record that stands on a Node; empty when there is none.
std::string shown_record(const k8s::Node& node);
// The record that stands on a Node; nothing where no agent has written one.
std::optional<Record> record_of(const k8s::Node& node);

// What a Node shows beside the record: the last status that was written.
Status shown_status(const k8s::Node& node, const Record& record);

// Somebody asked for a reboot of this node.
bool reboot_requested(const k8s::Node& node);

// The patch that makes the Node show this, or nothing when it does already. Guarded by its resourceVersion. A record
// that could not be read stays what it is: a newer version may read it. A pool label that is not the record's is
// somebody else's, and stays.
std::optional<std::string> status_patch(const k8s::Node& node, const Record& record, const Status& status, Need need,
                                        bool request_served);

// Takes the node out of external load balancers, or back: only where nobody else has set the label. Guarded by its
// resourceVersion; nothing when there is nothing to do.
inline constexpr std::string_view exclude_label = "node.kubernetes.io/exclude-from-external-load-balancers";
inline constexpr std::string_view exclude_value = "haulout";
std::optional<std::string> exclude_patch(const k8s::Node& node, bool exclude);

inline constexpr std::string_view maintenance_condition = "HauloutMaintenance";
// From the moment that the own cordon is due until it has been taken back.
bool in_maintenance(const Record& record);
// For nodes/status (strategic merge patch): the condition is True from cordon to uncordon, with the label's reason; it
// is not set on a Node that never needed it. Nothing when it stands so already, and its agent was heard of lately:
// while it is True its lastHeartbeatTime is never older than `heartbeat` for long.
inline constexpr Duration heartbeat = std::chrono::minutes(5);
std::optional<std::string> condition_patch(const k8s::Node& node, bool maintenance, const Status& status, WallTime now);

// For nodes/status: takes the condition away; nothing when it is not there.
std::optional<std::string> no_condition_patch(const k8s::Node& node);
// Takes labels, message, record and ticket away, the pool label where it is the record's, and nothing that people
// write. Guarded; nothing when there are none.
std::optional<std::string> no_status_patch(const k8s::Node& node);

}  // namespace haulout::agent
