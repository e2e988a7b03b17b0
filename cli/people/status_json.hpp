// What `haulout status -o json` prints, as docs/commands.md promises. Fields in a fixed order; times are RFC 3339 in
// UTC, or null. Pure.
#pragma once

#include <string>

#include "cli/people/fleet_summary.hpp"

namespace haulout::cli {

// The fields of one NodeStatus, as they stand in the others.
std::string node_status_json(const NodeView& node);
// kind NodeStatusList, indented, ends with a line break.
std::string node_status_list_json(const Fleet& fleet, WallTime now);

enum class WatchedChange { added, modified, deleted };
// One change of a NodeStatus on one line, with a line break, as `kubectl get -w --output-watch-events -o json` has it.
std::string watched_node_json(WatchedChange change, const NodeView& node, WallTime now);

}  // namespace haulout::cli
