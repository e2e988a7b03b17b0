// What a shutdown by another program means for a node, and what the Node shows after it. Pure.
#pragma once

#include <string>

#include "agent/node/record.hpp"
#include "drain/report.hpp"

namespace haulout::agent {

enum class Leaving {
  drains,    // the node has to be drained: the agent has not evicted its pods yet
  draining,  // a drain is already running
  has_left,  // the node is drained already, or in a condition in which the agent must not change it
};
// The drain before such a shutdown needs no slot, because the machine goes down with or without one.
Leaving leaving_of(const Record& record);

// Reason and message for the Node after a drain whose time a shutdown has limited.
struct LeavingResult {
  std::string reason{}, message{};
};
LeavingResult leaving_result(const drain::Report& report);

}  // namespace haulout::agent
