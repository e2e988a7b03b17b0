// Simulates the update of a whole fleet on a copy of a cluster, in virtual time. Each Ready node of the snapshot gets a
// machine that needs one reboot, and the agent that would run there, with its gates and slots. No I/O.
//
// First, the rehearsal removes what Haulout itself has written to the Nodes of the snapshot, so that every node begins
// anew. The cordons of people stay, and count as theirs.
//
// Blocks until the simulation is over; not cancellable. The same objects, configuration and seed give the same result.
#pragma once

#include <string>
#include <vector>

#include "agent/config/option.hpp"
#include "agent/node/state.hpp"
#include "rehearse/rehearsal.hpp"

namespace haulout::rehearse {

struct FleetInput {
  Snapshot snapshot;
  agent::AgentConfig config;                       // used by every agent
  Assumptions assumptions;                         // its `give_up` is not used: that is for the rehearsal of drains
  Duration give_up = std::chrono::hours(6);        // base of the limit without progress, see FleetEnd::stuck
  Duration reboot_time = std::chrono::minutes(3);  // from shutdown until the kubelet reports again
  std::uint64_t seed = 1;
};

// A span of time during which a node was in one state.
struct FleetPhase {
  agent::State state = agent::State::unknown;
  WallTime from;
  std::optional<WallTime> until;  // unset: the node is still in this state at the end
};

struct FleetNode {
  std::string name;
  // Why the node has no agent. Then the members below have no meaning. Empty: the node has an agent.
  std::string left_out;
  bool updated = false;                        // its machine has rebooted; it is in service again if `state` is idle
  agent::State state = agent::State::unknown;  // at the end
  std::string reason{}, message{};             // as the agent would show them on the Node at the end
  std::vector<FleetPhase> phases{};
  std::vector<std::string> holds_up{};  // pods for which its drain waits at the end, and why: "shop/web-0: …"
};

enum class FleetEnd {
  over,     // every node was updated or is degraded
  stuck,    // there was no progress for `given_up_after`, and time alone would not have changed that
  horizon,  // thirty days of virtual time have passed
};

struct FleetRehearsal {
  std::vector<FleetNode> nodes;  // by the start of their first drain, then by name; nodes without an agent come last
  FleetEnd end = FleetEnd::over;
  WallTime began{};
  WallTime ended{};           // if the end is `over`: when the last node reached its last state
  Duration given_up_after{};  // the limit without progress, see `stuck`
  std::size_t most_out = 0;   // most nodes that were unavailable at the same moment because of the update
  // Pods for which the scheduler had found no node when a node was drained, or at the end. Without pods that had no
  // node at the beginning.
  std::vector<NoRoom> no_room;
  std::vector<std::string> not_weighed;  // see Rehearsal::not_weighed
  std::vector<std::string> assumed;      // a phrase for each thing that no snapshot has, or that is not simulated
  Timeline timeline;
};

// Figures from the phases of nodes. `end` is the end of the simulation.
bool is_out(agent::State state);                               // true if the update makes the node unavailable
std::optional<WallTime> turn_of(const FleetNode& node);        // when its first drain began
Duration drained_in(const FleetNode& node, WallTime end);      // time of draining, over all attempts
Duration out_of_service(const FleetNode& node, WallTime end);  // time from cordon to uncordon, over all attempts
std::size_t most_out_at_once(const std::vector<FleetNode>& nodes);

// Fails with Errc::decode if the snapshot cannot be used, and with Errc::invalid if the configuration cannot be used or
// no node is Ready.
Result<FleetRehearsal> rehearse_fleet(const FleetInput& input);

}  // namespace haulout::rehearse
