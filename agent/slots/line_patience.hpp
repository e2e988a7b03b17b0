// How long an agent lets the first nodes of the line (agent/node/roll_out_order.hpp) leave a free slot to the others.
// No Node in the state `waiting` shows that its agent has died, and a dead agent must not hold up all others for ever.
// Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/node/roll_out_order.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

// Longer than the longest time after which an agent polls that is the first in the line, so that it has seen the slot.
inline constexpr Duration order_patience = std::chrono::minutes(10);

class LinePatience {
 public:
  // Returns the nodes that are passed over. Forgets those that are not in `waiting`, the nodes that wait for a slot:
  // their agents act.
  std::set<std::string> passed_over(const std::set<std::string>& waiting);
  // To be called after each look at the slots. `before`: the nodes for which this one leaves a free slot; empty if no
  // slot is free for it for another reason, or if it has taken one.
  void watch(const std::vector<EarlierNode>& before, TimePoint now);
  // Returns when to look again because of a node in the line; TimePoint::max() if no look is due.
  TimePoint next() const { return next_; }

 private:
  struct First {
    TimePoint since;
    bool passed_over = false;
  };
  TimePoint next_ = TimePoint::max();
  std::map<std::string, First> first_;  // by name of the node
};

}  // namespace haulout::agent
