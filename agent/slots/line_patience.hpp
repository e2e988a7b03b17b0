// How long an agent lets the first nodes of the line (agent/node/roll_out_order.hpp) leave a free slot to the others.
// No Node in the state `waiting` shows that its agent has died, and a dead agent must not hold up all others for ever.
// Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/node/roll_out_order.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

// Longer than the longest time after which an agent polls that is the first in the line, so that it has seen the slot.
inline constexpr Duration order_patience = std::chrono::minutes(10);

// Only the time counts in which a slot is free for these nodes: all others together wait that long for a dead agent,
// and not once for each slot.
class LinePatience {
 public:
  // Returns the nodes that are passed over. `waiting`: the nodes that wait, and have no slot. Forgets all others: their
  // agents act. The time in which such a live node could have taken the slot does not count for those that are equal to
  // it or come after it. Stops the clocks until watch().
  std::set<std::string> passed_over(const std::set<std::string>& waiting, TimePoint now);
  // To be called after each look at the slots. `before`: the nodes for which this one leaves a free slot; empty if no
  // slot is free for it for another reason, or if it has taken one.
  void watch(const std::vector<EarlierNode>& before, TimePoint now);
  // To be called when slots were taken or released, too: until the next look it is unknown whether one is free.
  void stop(TimePoint now);
  // Returns when to look again because of a node in the line; TimePoint::max() if no look is due.
  TimePoint next() const { return next_; }

 private:
  struct Measured {
    Duration left_free{};              // how long it has left a free slot to others, without the time since `since`
    std::optional<TimePoint> since{};  // set while a slot is free
    std::size_t place = 0;             // EarlierNode::place
    bool passed_over() const { return left_free >= order_patience; }
  };
  TimePoint next_ = TimePoint::max();
  std::map<std::string, Measured> measured_;  // by name of the node
};

}  // namespace haulout::agent
