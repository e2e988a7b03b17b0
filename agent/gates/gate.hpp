// The gates that need nobody else's answer: window, pauses and reboot brake, each as a row with its reason. Pure.
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

// OutsideWindow; WindowTooShort: what is open closes before an update, as this node's last ones went, would be over.
// Where no window is as long as the longest of them, an ordinary one has to fit, and without a history none: otherwise
// one update that was held up would keep the node from ever going again. Without the turn there has to be a minute
// more, for taking it: else a node could take one in vain at the start of each window.
Gate window_gate(const Schedule& schedule, const std::vector<std::chrono::seconds>& took, bool with_turn, WallTime now);

// Paused. `whom`: "this node", "pool web".
Gate pause_gate(std::string name, const std::string& whom, const std::optional<Pause>& pause, WallTime now);

// RebootLoop, TooManyReboots (see reboot_brake.hpp). Open for what a person has requested.
Gate brake_gate(const std::vector<PastReboot>& past, const Pending& wanted, bool requested, WallTime now,
                std::size_t per_day);

// The closed ones first, otherwise in their order.
std::vector<Gate> closed_first(const std::vector<Gate>& rows);

}  // namespace haulout::agent
