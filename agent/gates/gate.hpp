// The gates that need no request: maintenance window, pauses and reboot limit. Each is a row with its reason. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "agent/gates/gate_keeper.hpp"
#include "agent/gates/pause.hpp"
#include "agent/gates/reboot_brake.hpp"
#include "agent/gates/window.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

// Closed with OutsideWindow, or with WindowTooShort if the window closes before an update of this node would be over.
// `took` holds the durations of the last updates. The longest of them has to fit (30 minutes without a history). If no
// window is that long, the median has to fit (0 without a history). Otherwise one slow update would prevent all later
// updates of the node. If the node has no slot yet (`with_turn` is false), one more minute has to fit, for taking it.
// Otherwise a node could take a slot in vain at the start of each window.
Gate window_gate(const Schedule& schedule, const std::vector<std::chrono::seconds>& took, bool with_turn, WallTime now);

// Closed with Paused. `whom` names what is paused, for example "this node" or "pool web".
Gate pause_gate(std::string name, const std::string& whom, const std::optional<Pause>& pause, WallTime now);

// Closed with RebootLoop or TooManyReboots (see reboot_brake.hpp). Open if a person has requested the reboot.
Gate brake_gate(const std::vector<PastReboot>& past, const Pending& wanted, bool requested, WallTime now,
                std::size_t per_day);

// Returns the closed gates first, otherwise in the same order.
std::vector<Gate> closed_first(const std::vector<Gate>& rows);

}  // namespace haulout::agent
