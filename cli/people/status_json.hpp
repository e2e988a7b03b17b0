// Formats the output of `haulout status -o json`, as docs/commands.md promises. Fields have a fixed order; times are
// RFC 3339 in UTC, or null. Pure.
#pragma once

#include <string>

#include "cli/people/fleet_summary.hpp"

namespace haulout::cli {

// Returns one node as a JSON object on one line, with a line break. Its fields are those of a node in a NodeStatusList.
std::string node_status_json(const NodeView& node);
// Returns one JSON object of kind NodeStatusList, indented, with a line break at its end.
std::string node_status_list_json(const Fleet& fleet, WallTime now);

enum class WatchedChange { added, modified, deleted };
// Returns one change of a node as a JSON object on one line, with a line break, like `kubectl get -w
// --output-watch-events -o json`.
std::string watched_node_json(WatchedChange change, const NodeView& node, WallTime now);

}  // namespace haulout::cli
