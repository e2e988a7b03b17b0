// Simulates the update of a whole fleet on a copy of a cluster, in virtual time. Each Ready node of the snapshot gets a
// machine that needs one reboot, and the agent that would run there, with its gates and slots. No I/O.
//
// First, the rehearsal removes what Haulout itself has written to the Nodes of the snapshot, so that every node begins
// a new update. Cordons of people stay, and the agents treat them as such.
//
// rehearse_fleet() blocks until the simulation is over and cannot be cancelled. The same objects, configuration and
// seed give the same result.
#pragma once

#include <string>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "agent/node/state.hpp"
#include "rehearse/courses.hpp"
#include "rehearse/rehearsal.hpp"

namespace haulout::rehearse {

struct SnapshotObjects;  // rehearse/stage.hpp

struct FleetInput {
  Snapshot snapshot;
  agent::AgentConfig config;  // the configuration of every agent
  Assumptions assumptions;    // assumptions about pods and volumes; `give_up` of it is not used
  // If no node makes progress for this time plus all assumed times (FleetRehearsal::given_up_after), the simulation
  // ends as FleetEnd::stuck.
  Duration give_up = std::chrono::hours(6);
  Duration reboot_time = std::chrono::minutes(3);  // time from the shutdown of a node until its kubelet reports again
  std::uint64_t seed = 1;
  OnProgress on_progress{};
};

// A span of time during which a node was in one state.
struct FleetPhase {
  agent::State state = agent::State::unknown;
  WallTime from;
  std::optional<WallTime> until;  // when the state ended; unset: the node is in it at the end
};

struct FleetNode {
  std::string name;
  // Why the rehearsal runs no agent for the node; the members below are then not set. Empty: the node has an agent.
  std::string left_out;
  bool updated = false;  // true if its machine has rebooted; the update is complete if `state` is idle, too
  agent::State state = agent::State::unknown;  // state of the node at the end of the simulation
  std::string reason{}, message{};             // why the node does not go on at the end, as its agent shows it
  std::vector<FleetPhase> phases{};
  // Pods that keep its drain from ending at the end of the simulation, each with the message why: "shop/web-0: …"
  std::vector<std::string> holds_up{};
};

enum class FleetEnd {
  over,  // every node with an agent was updated or is degraded
  // No node made progress for `given_up_after`. Time in which a node soaks, or in which all unfinished nodes wait for
  // their windows, does not count.
  stuck,
  horizon,  // thirty days of virtual time have passed
};

struct FleetRehearsal {
  // Sorted by the start of their first drain, then by name. Nodes without an agent are last.
  std::vector<FleetNode> nodes;
  FleetEnd end = FleetEnd::over;
  WallTime began{};
  WallTime ended{};              // end of the simulation; if `end` is `over`, when the last node reached its last state
  Duration given_up_after{};     // the time without progress after which the simulation ends as FleetEnd::stuck
  std::size_t most_out = 0;      // largest number of nodes that were unavailable at the same time because of the update
  std::size_t largest_pool = 0;  // number of nodes of the largest pool that is not limited to one node anyway
  // Pods for which the scheduler had found no node when a node was drained, or at the end. Does not contain pods that
  // had no node at the beginning, or that find capacity once terminating pods are deleted.
  std::vector<NoRoom> no_room;
  // Pods whose placement depends on something that is not simulated, see Rehearsal::not_weighed.
  std::vector<std::string> not_weighed;
  // A phrase for each assumption made because no snapshot contains the fact, or because it is not simulated.
  std::vector<std::string> assumed;
  std::vector<OwnerCourse> owners;    // sorted by name
  std::vector<BudgetCourse> budgets;  // sorted by name
  Timeline timeline;
};

// The functions below compute figures from the phases of nodes. `end` is the end of the simulation.
// Returns true if a node in this state is unavailable because of its update.
bool is_out(agent::State state);
// Returns true if the node waits for a time of day.
bool is_outside_window(const FleetNode& node);
// Returns the time at which the first drain of the node began; nullopt if none did.
std::optional<WallTime> turn_of(const FleetNode& node);
// Returns the total time in which the node was draining, over all attempts.
Duration drained_in(const FleetNode& node, WallTime end);
// Returns the total time in states for which is_out() is true, over all attempts.
Duration out_of_service(const FleetNode& node, WallTime end);
// Returns the largest number of nodes that were unavailable at the same time because of their updates.
std::size_t most_out_at_once(const std::vector<FleetNode>& nodes);

// Returns an error with the remedy if agents with this configuration cannot be simulated; nullopt if they can.
std::optional<Error> unplayable(const agent::AgentConfig& config);

// Runs the simulation. Fails with Errc::decode if the snapshot is invalid, and with Errc::invalid if agents with the
// configuration cannot be simulated or no node is Ready.
Result<FleetRehearsal> rehearse_fleet(FleetInput input);

// For several rehearsals of one snapshot: read_for_fleet() reads it, and frees its documents; the other function
// rehearses the objects instead of the documents of the input. Together they do what rehearse_fleet(input) does.
Result<SnapshotObjects> read_for_fleet(Snapshot& snapshot, const OnProgress& on_progress = {});
Result<FleetRehearsal> rehearse_fleet(FleetInput input, SnapshotObjects objects);

}  // namespace haulout::rehearse
