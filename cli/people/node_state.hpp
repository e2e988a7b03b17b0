// The state that an agent has written on its Node, for commands that only read it. Pure.
#pragma once

#include <string>

#include "k8s/objects.hpp"

namespace haulout::cli {

// Returns the value of the label haulout.dev/state; empty if no agent has reported on this node.
std::string state_shown(const k8s::Node& node);
// Returns true if a node in this state is being updated: from taking its slot (the permission to be unavailable) to
// releasing it. False for degraded.
bool is_under_way(std::string_view state);

}  // namespace haulout::cli
