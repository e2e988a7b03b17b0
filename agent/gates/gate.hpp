// The rules of the gates that are evaluated without a request: maintenance window, pauses, a person's cordon, reboot
// limit and pin. Each function with the return type Gate evaluates one gate. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "agent/gates/gate_keeper.hpp"
#include "agent/gates/pause.hpp"
#include "agent/gates/window.hpp"
#include "agent/node/node_cordon.hpp"
#include "agent/node/record.hpp"
#include "agent/ports/backend.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

// Estimates of how long the next update of this node will take, from the durations of its last updates
// (Record::durations; the newest is the last element). A duration that is zero or negative is ignored, and one of more
// than a week counts as a week: such values come from a clock that jumped. Estimates are whole seconds, rounded up.

// Returns the longest duration plus a fifth; 30 minutes if there is none.
Duration estimated_update(const std::vector<std::chrono::seconds>& history);
// Returns the median duration plus a fifth; 0 if there is none.
Duration ordinary_update(const std::vector<std::chrono::seconds>& history);

// The result of the reboot limit, which stops a reboot that would change nothing, or that is one too many in a day. The
// node's record has the last reboots (Record::reboots). The time of a reboot is at first that of its request, and later
// that of its boot.
struct Brake {
  std::string reason;                    // in CamelCase for the label: RebootLoop, TooManyReboots
  std::string message;                   // one sentence: thing, cause, remedy
  std::optional<WallTime> look_again{};  // when the reboot becomes allowed just because time passes; unset: never
  bool operator==(const Brake&) const = default;
};

inline constexpr std::size_t default_reboots_per_day = 3;

// Returns true if the operating system needs a reboot for the same update as the reboot `last`, and has needed one ever
// since that reboot.
bool same_need(const PastReboot& last, const Pending& wanted);

// Returns nothing if the reboot is allowed, or if `wanted.need` is not `yes`. `past` holds reboots that were requested
// and reboots whose boot was seen, the oldest first. A reboot up to a day later than `now` counts as one of the last
// day, because the clock may have been set back.
//   RebootLoop      the last reboot that was seen had the same target, and the need never went away after it. If
//                   neither has a target, every reason of `wanted` must be among the reasons of that reboot; if
//                   `wanted` has no reasons, every reboot matches
//   TooManyReboots  this reboot would be one more than `per_day` within 24 hours; 0 disables this limit
std::optional<Brake> reboot_brake(const std::vector<PastReboot>& past, const Pending& wanted, WallTime now,
                                  std::size_t per_day = default_reboots_per_day);

// The gate "cordon": the agent does not update a node that a person has cordoned. Closed (CordonedByPerson) while the
// node has a cordon that no agent has set. If it closes during a drain that has not cordoned the node yet, the agent
// gives that drain up. Off if `policy` is `update`. Open once the agent's current drain has cordoned the node, whoever
// set the cordon that the node has now.
Gate cordon_gate(const k8s::Node& node, const Record& record, CordonedNodes policy);

// The gate "window". Closed with OutsideWindow, or with WindowTooShort if the window closes before an update of this
// node would be finished. `took` holds the durations of the last updates. The longest of them plus a fifth has to fit
// (30 minutes without a history). If no window is that long, the median plus a fifth has to fit (0 without a history);
// otherwise one slow update would prevent all later updates of the node. If the node has no slot yet (`with_turn` is
// false), one more minute has to fit, for taking the slot. Otherwise a node could take a slot at the start of each
// window, only to find that the update does not fit any more.
Gate window_gate(const Schedule& schedule, const std::vector<std::chrono::seconds>& took, bool with_turn, WallTime now);

// A gate for a pause. Closed with Paused. `whom` names what is paused, for example "this node" or "pool web".
Gate pause_gate(std::string name, const std::string& whom, const std::optional<Pause>& pause, WallTime now);

// The gate "reboot-brake". Closed with RebootLoop or TooManyReboots (see reboot_brake()). Open if a person has
// requested the reboot.
Gate brake_gate(const std::vector<PastReboot>& past, const Pending& wanted, bool requested, WallTime now,
                std::size_t per_day);

// The gate "pin". Closed (VersionPinned) if an update or a reboot is wanted that leads to another version than `pin`,
// or to none that is known. If it closes during a drain, the agent gives that drain up.
Gate pin_gate(const std::string& pin, const Pending& wanted);

// Returns the rows with the closed gates first; otherwise the order stays the same.
std::vector<Gate> closed_first(const std::vector<Gate>& rows);

}  // namespace haulout::agent
