// Summarises the progress of the updates of a fleet, and what keeps its nodes from being updated. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/people/views.hpp"

namespace haulout::cli {

struct Fleet {
  std::vector<NodeView> nodes;  // sorted by name
  FleetFacts facts;
  bool whole = true;  // true if `nodes` has all nodes of the cluster, false if it has a selection
};

// Returns the Fleet of these nodes, with a view of each node, sorted by name.
Fleet fleet_of(const std::vector<k8s::Node>& nodes, FleetFacts facts, bool whole, WallTime now);

struct Count {
  std::string what;  // "up to date", "waiting", "draining", …
  std::size_t nodes = 0;
  bool operator==(const Count&) const = default;
};
// Returns how many nodes are in each stage of an update, in the order of the stages. Counts each node once. Leaves out
// stages without nodes.
std::vector<Count> counts(const std::vector<NodeView>& nodes);
// Returns the counts of the nodes as a line, for example "5 nodes: 3 up to date, 1 waiting, 1 draining".
std::string count_line(const std::vector<NodeView>& nodes);

// Returns one line for each pause of the cluster or of a pool that is in force.
std::vector<std::string> pause_lines(const FleetFacts& facts, WallTime now);
// Returns lines that say what keeps the nodes of the fleet from being updated: degraded nodes, pauses, holders of slots
// and agents that do not report, Leases of deleted nodes, nodes with too many slots, why the other nodes wait, and
// objects that cannot be read, in this order. Returns no lines if nothing keeps them.
std::vector<std::string> hold_lines(const Fleet& fleet, WallTime now);

// Formats the output of `haulout status -o json`, as docs/commands.md promises. Fields have a fixed order; times are
// RFC 3339 in UTC, or null. Pure.

// Returns one node as a JSON object on one line, with a line break. Its fields are those of a node in a NodeStatusList.
std::string node_status_json(const NodeView& node);
// Returns one JSON object of kind NodeStatusList, indented, with a line break at its end.
std::string node_status_list_json(const Fleet& fleet, WallTime now);

enum class WatchedChange { added, modified, deleted };
// Returns one change of a node as a JSON object on one line, with a line break, like `kubectl get -w
// --output-watch-events -o json`.
std::string watched_node_json(WatchedChange change, const NodeView& node, WallTime now);

}  // namespace haulout::cli
