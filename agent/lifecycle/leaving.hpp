// What somebody else's shutdown of the machine means for a node, and what is said of it afterwards. Pure.
#pragma once

#include <string>

#include "agent/node/record.hpp"
#include "drain/report.hpp"

namespace haulout::agent {

enum class Leaving {
  drains,    // nothing of ours has taken its pods away yet
  draining,  // they are leaving anyway
  has_left,  // empty since our own drain, or nothing that an agent may touch
};
// No turn is needed for it: the machine goes down with a turn or without.
Leaving leaving_of(const Record& record);

// Reason and sentence of the Node after a drain that a shutdown has bounded.
struct LeavingResult {
  std::string reason{}, message{};
};
LeavingResult leaving_result(const drain::Report& report);

}  // namespace haulout::agent
