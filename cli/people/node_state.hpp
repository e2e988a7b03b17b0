// What an agent has written on its Node, for those who only read it. Pure.
#pragma once

#include <string>

#include "k8s/objects.hpp"

namespace haulout::cli {

// The label haulout.dev/state; empty when no agent has reported on this node.
std::string state_shown(const k8s::Node& node);
// Between taking its turn and giving it back, or stopped on the way.
bool is_under_way(std::string_view state);

}  // namespace haulout::cli
