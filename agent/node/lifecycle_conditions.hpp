// The conditions by which an agent tells on its Node what it does (KEP-5683): MaintenancePlanned, DrainInProgress,
// Drained, MaintenanceInProgress. Pure.
//
// Other programs may write conditions of these types, too. The messages of the agent's conditions begin with
// `condition_author`, and the agent changes and removes only conditions with this beginning. If another program writes
// another message, the condition is that program's from then on. The agent shows a condition only while it is True.
// When it is not True any more, the agent removes it, and does not set it to False: nobody could tell later which
// program had written that.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/node/node_status.hpp"

namespace haulout::agent {

// The beginning of the messages of the agent's conditions.
inline constexpr std::string_view condition_author = "haulout: ";
inline constexpr std::string_view planned_condition = "MaintenancePlanned";
inline constexpr std::string_view drain_condition = "DrainInProgress";
inline constexpr std::string_view drained_condition = "Drained";
inline constexpr std::string_view maintenance_condition = "MaintenanceInProgress";
// What agents wrote before these conditions. They remove it.
inline constexpr std::string_view old_maintenance_condition = "HauloutMaintenance";
// The reason of Drained, from the KEP's examples: the criteria of the drain are met.
inline constexpr std::string_view drained_reason = "DrainCompleted";

// Returns true if an agent has written this condition, and nobody has taken it over.
bool is_own(const k8s::NodeCondition& condition);

// A condition that must be True.
struct ToldCondition {
  std::string_view type;
  std::string reason{};
  std::string message{};
  bool operator==(const ToldCondition&) const = default;
};

// What the conditions depend on. Borrowed.
struct ConditionFacts {
  const k8s::Node& node;
  const Record& record;
  const Status& status;
  const std::string& boot_id;  // that the agent reads from its machine
  bool needed = false;         // a reboot or an update is wanted, or that is unknown
  bool proved = false;         // the last proof found no pod that must leave, and nothing has withdrawn it since
  bool gates_asked = true;     // `not_before` is up to date; false soon after the start of the agent
  std::optional<WallTime> not_before{};  // a time before which the update does not begin, if one is known
};

// Returns the conditions that must be True now, in the order of the update:
//   MaintenancePlanned: the node waits for its update, until its cordon is in force, with the reason for the wait.
//     While the agent is between two reasons, or has not asked the gates yet, it leaves the condition as it is. The
//     message names a time only if one is known.
//   DrainInProgress: in the state draining, while the cordon of this run is in force.
//   Drained: in the states ready and rebooting, while the node is unschedulable, `proved`, and the machine has not
//     booted since.
//   MaintenanceInProgress: while the cordon of this run is in force, and while the machine itself is changed (updating,
//     rebooting).
// If the record cannot be read: only MaintenanceInProgress, while the Node has an agent's cordon.
std::vector<ToldCondition> told_conditions(const ConditionFacts& facts);
bool is_told(std::string_view type, const std::vector<ToldCondition>& told);
// Returns true if the two differ at most in words of the messages that are not worth a write.
bool say_the_same(const std::vector<ToldCondition>& one, const std::vector<ToldCondition>& other);

// While one of the conditions is True, except MaintenancePlanned, the agent renews its lastHeartbeatTime at least once
// per `heartbeat`.
inline constexpr Duration heartbeat = std::chrono::minutes(5);
// Returns the strategic merge patch for nodes/status after which the Node shows these conditions, and no other
// conditions of an agent. Returns nothing if no change is necessary. It is guarded by the Node's resourceVersion. A
// condition that others have written stays as it is, except that one with the status False is taken over to make it
// True.
// With `beat` a heartbeat that is older than half of `heartbeat` is a change, too.
std::optional<std::string> conditions_patch(const k8s::Node& node, const std::vector<ToldCondition>& told, WallTime now,
                                            bool beat);
// Returns true if conditions_patch() returns nothing. Costs less than a patch, because it is asked after each news.
bool shows_conditions(const k8s::Node& node, const std::vector<ToldCondition>& told, WallTime now, bool beat);
// Returns true if the Node shows an agent's condition Drained, and it is not among `told`.
bool must_withdraw_drained(const k8s::Node& node, const std::vector<ToldCondition>& told);
// Returns the guarded patch that removes the condition Drained, and changes nothing else.
std::string drained_withdrawal(const k8s::Node& node);

}  // namespace haulout::agent
