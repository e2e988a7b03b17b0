#include "rehearse/awake_machines.hpp"

#include <algorithm>

#include "drain/reasons.hpp"

namespace haulout::rehearse {

void AwakeMachines::add(FleetMachine& machine, const Group& group, std::size_t limit) {
  Members& members = groups_[group];
  members.limit = limit;
  members.asleep.push_back(&machine);
}

void AwakeMachines::begin(WallTime began) {
  for (auto& [group, members] : groups_) {
    std::reverse(members.asleep.begin(), members.asleep.end());
    if (members.asleep.size() <= small) members.limit = members.asleep.size();
    members.large = members.asleep.size() > members.limit;
    wake(members);
    for (FleetMachine* machine : members.asleep) machine->wait_for_turn(began, group.first);
  }
}

void AwakeMachines::wake_next() {
  for (auto& [group, members] : groups_) wake(members);
}

// Nodes whose gates are closed for another reason than the time of day take no place: they may stay closed for ever,
// for example because a person has cordoned the node.
bool AwakeMachines::needs_place(const FleetNode& node) {
  return node.state != agent::State::pending || is_outside_window(node);
}

void AwakeMachines::wake(Members& members) {
  std::erase_if(members.awake, [](const FleetMachine* machine) { return machine->finished(); });
  auto places = static_cast<std::size_t>(std::count_if(members.awake.begin(), members.awake.end(),
                                                       [](const auto* one) { return needs_place(one->story()); }));
  while (!members.asleep.empty() && places < members.limit + competitors) {
    FleetMachine* next = members.asleep.back();
    members.asleep.pop_back();
    next->wake(members.large);
    members.awake.push_back(next);
    ++places;
  }
}

std::vector<const FleetNode*> AwakeMachines::at_work() const {
  std::vector<const FleetNode*> nodes;
  for (const auto& [group, members] : groups_)
    for (const FleetMachine* machine : members.awake)
      if (!machine->finished()) nodes.push_back(&machine->story());
  return nodes;
}

std::size_t AwakeMachines::unfinished() const {
  std::size_t count = 0;
  for (const auto& [group, members] : groups_) count += members.asleep.size() + members.awake.size();
  return count;
}

void AwakeMachines::tell_sleepers() {
  for (auto& [group, members] : groups_) {
    const auto waits = std::find_if(members.awake.begin(), members.awake.end(), [](const FleetMachine* machine) {
      return machine->story().state == agent::State::waiting || is_outside_window(machine->story());
    });
    if (waits == members.awake.end()) continue;
    for (FleetMachine* machine : members.asleep) machine->tell_as((*waits)->story());
  }
}

}  // namespace haulout::rehearse
