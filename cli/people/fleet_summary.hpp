// How far a fleet is, and what holds it up. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/people/node_view.hpp"

namespace haulout::cli {

struct Fleet {
  std::vector<NodeView> nodes;  // by name
  FleetFacts facts;
  bool whole = true;  // all nodes of the cluster, not a selection
};

// Sorted by name.
Fleet fleet_of(const std::vector<k8s::Node>& nodes, FleetFacts facts, bool whole, WallTime now);

struct Count {
  std::string what;  // "up to date", "waiting", "draining", …
  std::size_t nodes = 0;
  bool operator==(const Count&) const = default;
};
// Every node once, empty counts left out, in the order of the way through an update.
std::vector<Count> counts(const std::vector<NodeView>& nodes);
// "5 nodes: 3 up to date, 1 waiting, 1 draining".
std::string count_line(const std::vector<NodeView>& nodes);

// Pauses of cluster and pools, in force.
std::vector<std::string> pause_lines(const FleetFacts& facts, WallTime now);
// What holds the fleet up, the worst first: degraded nodes, pauses, who holds the turns, why the others wait, what
// cannot be seen. Empty when nothing does.
std::vector<std::string> hold_lines(const Fleet& fleet, WallTime now);

}  // namespace haulout::cli
