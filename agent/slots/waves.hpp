// The waves of a roll-out (--ramp), and its halt (--halt-after): how many nodes of a pool may be updated to one
// version, by the numbers of nodes that have come back well with it, or have failed with it. Pure.
//
// A roll-out is the update of a pool's nodes to one version. Its waves have sizes. A wave ends when all its nodes have
// come back well, and only then the next one begins. With --halt-after, nodes that have failed keep their places in the
// waves, but do not hold them up until they are too many. After the last wave only max-unavailable limits. Nothing is
// stored about a roll-out: it is computed from the records on the Nodes and from the Leases, so there is nothing that
// could differ from the truth, or that two agents could write at once.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/node/pool.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {

// What the Nodes of a pool show about the roll-out of one version.
struct RollOut {
  std::string version;
  std::vector<std::size_t> waves{};  // number of nodes of each wave

  // The nodes whose last update led to the version and was verified (Record::updated_to). Each with why it has not come
  // back well, for messages: "n7 is degraded". Empty: it has come back well, unless it holds a slot.
  struct Return {
    bool well = true;
    std::string why{};  // empty if it is about to end its update
    bool operator==(const Return&) const = default;
  };
  // Also nodes that have failed with the version and have not run well with it since (Record::failed_to).
  std::map<std::string, Return> returned{};
  // Nodes whose slot is for another version, and cannot lead to this one any more.
  std::set<std::string> elsewhere{};
  // Nodes that are not Ready, although no step of their update explains that any more. Each with words for messages:
  // "n3 is not Ready (rebooting since 2026-01-01 12:00 UTC)". If the machine is dead, no agent tells more.
  std::map<std::string, std::string> down{};
  // The roll-out halts when so many nodes have failed with the version; fewer do not hold a wave up (--halt-after). 0:
  // each failed node holds its wave up, and after the last wave none does.
  std::size_t halt_after = 0;
  bool operator==(const RollOut&) const = default;
};

// Reads the Nodes of a pool. `ramp` has the sizes of the waves, `nodes` is the number of nodes from which percentages
// are computed.
//
// A node has come back well if its record says that its last update led to this version and was verified, its update is
// over, and the node is Ready, and neither degraded nor (see wave_of()) the holder of a slot. A record without
// such a version is no proof: neither that of an older agent, nor that of a node that was added with the version.
RollOut roll_out_of(std::string version, const std::vector<MaxUnavailable>& ramp, std::size_t nodes,
                    const std::vector<const k8s::Node*>& members, WallTime now);
// Adds what one Node shows.
void note_node(RollOut& roll_out, const k8s::Node& node, WallTime now);

// Marks as released the nodes of `before` that hold no slot in `now`: it is unknown whether they have come back well.
// They keep their place in the wave. With `well` they count as nodes that have come back well.
void note_released(RollOut& roll_out, const std::set<std::string>& before, const std::set<std::string>& now, bool well);

// Returns true if the node has failed with the version, or is not well any more since its update to it.
bool has_failed(const RollOut& roll_out, const std::string& node);

// The present wave, as one node sees it that has no slot, or asks whether it may keep its slot.
struct Wave {
  std::size_t number = 0;             // from 1; 0 after the last wave
  std::size_t end = 0;                // how many nodes this wave and those before it have
  std::vector<std::string> well;      // nodes that have come back well
  std::vector<std::string> updating;  // nodes that hold a slot, or are about to end their update
  std::vector<std::string> troubled;  // why other nodes that count have not come back well: "n7 is degraded"
  // How many nodes may hold slots for this version, this one included. Not limited after the last wave.
  std::size_t places = 0;
  std::size_t taken = 0;  // by other nodes
  // Why nodes count as failed: troubled ones, and holders of slots that have failed before and try again.
  std::vector<std::string> failed;
  bool halted = false;     // too many nodes have failed, and this one is none of them
  bool soon_over = false;  // a node that holds no slot is about to end its update; no Lease will show that
  bool down = false;       // one of the troubled nodes is down
  bool has_place() const { return !halted && (number == 0 || taken < places); }
};
// A node that holds a slot of the pool.
struct SlotHolder {
  std::string name;   // empty if it is unknown; such a holder counts as one node each time
  std::string words;  // for messages
};
// `degraded` has the reason of each degraded node. Does not count the node `own`.
Wave wave_of(const RollOut& roll_out, const std::vector<SlotHolder>& holders,
             const std::map<std::string, std::string>& degraded, const std::string& own);

// "wave 2 of 4 of version 4230.2.0: 3 of 8 nodes have come back well, 2 are being updated (n4, n5), n7 is degraded: the
// roll-out waits until it is well". For a roll-out that is halted: "the roll-out of version 4230.2.0 is halted, because
// 2 nodes have failed with it or are not well (halt-after 2): …".
std::string words_of(const Wave& wave, const RollOut& roll_out);

}  // namespace haulout::agent
