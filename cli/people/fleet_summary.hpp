// Summarises how far the updates of a fleet are, and what holds them up. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/people/node_view.hpp"

namespace haulout::cli {

struct Fleet {
  std::vector<NodeView> nodes;  // sorted by name
  FleetFacts facts;
  bool whole = true;  // `nodes` are all nodes of the cluster, not a selection
};

// Makes the view of each node and sorts them by name.
Fleet fleet_of(const std::vector<k8s::Node>& nodes, FleetFacts facts, bool whole, WallTime now);

struct Count {
  std::string what;  // "up to date", "waiting", "draining", …
  std::size_t nodes = 0;
  bool operator==(const Count&) const = default;
};
// Counts each node once, in the order of the states of an update. Omits counts of 0.
std::vector<Count> counts(const std::vector<NodeView>& nodes);
// For example "5 nodes: 3 up to date, 1 waiting, 1 draining".
std::string count_line(const std::vector<NodeView>& nodes);

// One line per pause of the cluster or of a pool that is in force.
std::vector<std::string> pause_lines(const FleetFacts& facts, WallTime now);
// Lines that say what holds the fleet up, the worst first: degraded nodes, pauses, the holders of slots, why the other
// nodes wait, and what cannot be read. Empty if nothing holds it up.
std::vector<std::string> hold_lines(const Fleet& fleet, WallTime now);

}  // namespace haulout::cli
