// Simulates the update of a whole fleet on a copy of a cluster, in virtual time. Each Ready node of the snapshot gets a
// machine that needs one reboot, and the agent that would run there, with its gates and slots. No I/O.
//
// First, the rehearsal removes what Haulout itself has written to the Nodes of the snapshot, so that every node begins
// its update anew. Cordons that people have set stay, and the agents treat them as such.
//
// rehearse_fleet() blocks until the simulation is over and cannot be cancelled. The same objects, configuration and
// seed give the same result.
#pragma once

#include <string>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "agent/node/state.hpp"
#include "rehearse/rehearsal.hpp"

namespace haulout::rehearse {

struct FleetInput {
  Snapshot snapshot;
  agent::AgentConfig config;  // configuration that every agent uses
  Assumptions assumptions;    // what is assumed of pods and volumes; its `give_up` is not used
  // The simulation ends as stuck after a time without progress: `give_up` plus all assumed times, see
  // FleetRehearsal::given_up_after.
  Duration give_up = std::chrono::hours(6);
  Duration reboot_time = std::chrono::minutes(3);  // time from the shutdown of a node until its kubelet reports again
  std::uint64_t seed = 1;
};

// A span of time during which a node was in one state.
struct FleetPhase {
  agent::State state = agent::State::unknown;
  WallTime from;
  std::optional<WallTime> until;  // when the state ended; unset: the node is in it at the end
};

struct FleetNode {
  std::string name;
  // Why the rehearsal runs no agent for the node; the members below then have no meaning. Empty: the node has an agent.
  std::string left_out;
  bool updated = false;  // true if its machine has rebooted; it is in service again if `state` is idle
  agent::State state = agent::State::unknown;  // state of the node at the end of the simulation
  std::string reason{}, message{};             // why the node does not go on at the end, as its agent shows it
  std::vector<FleetPhase> phases{};
  std::vector<std::string> holds_up{};  // pods for which its drain waits at the end, with why: "shop/web-0: …"
};

enum class FleetEnd {
  over,     // every node was updated or is degraded
  stuck,    // no node made progress for `given_up_after`, and waiting longer would not have helped
  horizon,  // thirty days of virtual time have passed
};

struct FleetRehearsal {
  // Sorted by the start of their first drain, then by name. Nodes without an agent come last.
  std::vector<FleetNode> nodes;
  FleetEnd end = FleetEnd::over;
  WallTime began{};
  WallTime ended{};           // end of the simulation; if `end` is `over`, when the last node reached its last state
  Duration given_up_after{};  // the time without progress after which the simulation ends as FleetEnd::stuck
  std::size_t most_out = 0;   // most nodes that were unavailable at the same moment because of the update
  // Pods for which the scheduler had found no node when a node was drained, or at the end. Does not contain pods that
  // had no node at the beginning.
  std::vector<NoRoom> no_room;
  // Pods whose placement depends on something that is not simulated, see Rehearsal::not_weighed.
  std::vector<std::string> not_weighed;
  std::vector<std::string> assumed;  // a phrase for each thing that no snapshot has, or that is not simulated
  Timeline timeline;
};

// Functions that compute figures from the phases of nodes. `end` is the time at which the simulation ended.
bool is_out(agent::State state);  // true if a node in this state is unavailable because of its update
std::optional<WallTime> turn_of(const FleetNode& node);    // time at which the first drain of the node began
Duration drained_in(const FleetNode& node, WallTime end);  // total time that the node was draining, over all attempts
Duration out_of_service(const FleetNode& node, WallTime end);  // total time from cordon to uncordon, over all attempts
std::size_t most_out_at_once(const std::vector<FleetNode>& nodes);

// Returns why agents with this configuration cannot be rehearsed, with the remedy; nothing if they can.
std::optional<Error> unplayable(const agent::AgentConfig& config);

// Runs the simulation. Fails with Errc::decode if the snapshot cannot be used, and with Errc::invalid if the
// configuration cannot be used or no node is Ready.
Result<FleetRehearsal> rehearse_fleet(const FleetInput& input);

}  // namespace haulout::rehearse
