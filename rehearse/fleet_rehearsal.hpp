// The update of a whole fleet, played on a copy of a cluster: each Ready node of the snapshot gets a machine that wants
// one reboot and the agent that would run there, with its gates and turns, in virtual time. Changes nothing anywhere
// and knows no network.
//
// What Haulout itself had written to the snapshot's Nodes is taken away first, so that every node begins anew; the
// cordons of people stay, and count as theirs.
//
// Blocks until it is over. Same objects, configuration and seed: same result.
#pragma once

#include <string>
#include <vector>

#include "agent/config/option.hpp"
#include "agent/node/state.hpp"
#include "rehearse/rehearsal.hpp"

namespace haulout::rehearse {

struct FleetInput {
  Snapshot snapshot;
  agent::AgentConfig config;                       // of every agent
  Assumptions assumptions;                         // but give_up, which is about one drain
  Duration give_up = std::chrono::hours(6);        // without progress, see FleetEnd::stuck
  Duration reboot_time = std::chrono::minutes(3);  // from going down to a kubelet that reports
  std::uint64_t seed = 1;
};

// A stretch of time that a node was in one state.
struct FleetPhase {
  agent::State state = agent::State::unknown;
  WallTime from;
  std::optional<WallTime> until;  // unset: still at the end
};

struct FleetNode {
  std::string name;
  std::string left_out;                        // why it has no agent; empty: it has one, and the rest means something
  bool updated = false;                        // rebooted into the new version, and in service again
  agent::State state = agent::State::unknown;  // at the end
  std::string reason{}, message{};             // as its agent would show them on the Node then
  std::vector<FleetPhase> phases{};
  std::vector<std::string> holds_up{};  // pods that its drain waits for at the end, and why: "shop/web-0: …"
};

enum class FleetEnd {
  over,     // every node has been updated, or has stopped for a person to see to it
  stuck,    // for as long as is given up after nothing moved, and no time that comes would change that
  horizon,  // thirty days
};

struct FleetRehearsal {
  std::vector<FleetNode> nodes;  // as their turns came, then the others by name
  FleetEnd end = FleetEnd::over;
  WallTime began{};
  WallTime ended{};           // with the last update, where all came to one
  Duration given_up_after{};  // of `stuck`
  std::size_t most_out = 0;   // nodes that the update had taken out of service at the same moment, at most
  // Pods that had found no node when their node's drain was over, or at the end; not those that had none before.
  std::vector<NoRoom> no_room;
  std::vector<std::string> not_weighed;  // see Rehearsal
  std::vector<std::string> assumed;      // what no snapshot tells, and what is not played, a phrase each
  Timeline timeline;
};

// What the phases of a node say, up to the end of the play.
bool is_out(agent::State state);                               // out of service for the update's sake
std::optional<WallTime> turn_of(const FleetNode& node);        // when it came first
Duration drained_in(const FleetNode& node, WallTime end);      // all attempts together
Duration out_of_service(const FleetNode& node, WallTime end);  // from cordon to uncordon
std::size_t most_out_at_once(const std::vector<FleetNode>& nodes);

// Errc::decode: a snapshot that cannot be used. Errc::invalid: a configuration that cannot be, no node that is Ready.
Result<FleetRehearsal> rehearse_fleet(const FleetInput& input);

}  // namespace haulout::rehearse
