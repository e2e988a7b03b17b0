// Which machines of a large fleet run their agents.
//
// An agent that waits for a slot only watches, and one that has finished only waits for the next update. Thousands of
// such agents would cost nearly all of a rehearsal and change nothing. So a group of nodes that share a limit runs only
// the agents of as many nodes as may be unavailable, and of some that compete with them for the next slot. The other
// nodes wait. When an agent has finished, the next one of the group starts, in a random order, as agents compete in a
// random order. A small group runs all its agents all the time.
//
// Borrows the machines. No I/O.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rehearse/fleet_machine.hpp"

namespace haulout::rehearse {

class AwakeMachines {
 public:
  // A group with more nodes than this does not run all its agents.
  static constexpr std::size_t small = 32;
  // How many agents compete for slots, in addition to those that may have one.
  static constexpr std::size_t competitors = 2;

  // Nodes that share a limit: the name of their pool, and of their zone if zones are limited.
  using Group = std::pair<std::string, std::string>;

  // `limit`: how many nodes of the machine's group may be unavailable, or the number of all nodes for a group whose
  // agents all have to run. Machines are woken in the order of the calls.
  void add(FleetMachine& machine, const Group& group, std::size_t limit);
  // To be called once, after the last add(). `began`: the time from which the others wait.
  void begin(WallTime began);
  // Wakes the agents that have a place now. To be called when a machine has finished, and now and then.
  void wake_next();
  // Returns the machines that run an agent and have not finished.
  std::vector<const FleetNode*> at_work() const;
  // Returns how many machines had not finished when wake_next() was last called.
  std::size_t unfinished() const;
  // Tells for each node that still sleeps what an agent of its group tells that waits for its slot, or for its window.
  void tell_sleepers();

 private:
  struct Members {
    std::size_t limit = 0;
    bool large = false;                   // not all agents run
    std::vector<FleetMachine*> asleep{};  // the next one is last
    std::vector<FleetMachine*> awake{};   // without those that have finished
  };
  static bool needs_place(const FleetNode& node);
  static void wake(Members& members);

  std::map<Group, Members> groups_;
};

}  // namespace haulout::rehearse
