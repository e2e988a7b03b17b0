// The Nodes of a simulated cluster, decoded. The agents of a large fleet share this table instead of listing all Nodes
// themselves: it decodes a Node only when it has changed. Borrows the cluster, which must outlive it. No I/O.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/node/pool.hpp"
#include "sim/cluster.hpp"

namespace haulout::rehearse {

class NodeTable {
 public:
  explicit NodeTable(sim::Cluster& cluster);
  NodeTable(const NodeTable&) = delete;
  NodeTable& operator=(const NodeTable&) = delete;

  // Returns the Nodes that match the label selector, as they are now, sorted by name. Fails with Errc::invalid if the
  // selector is invalid, and with Errc::decode if a Node cannot be decoded.
  Result<std::vector<agent::ListedNode>> list(std::string_view selector);

 private:
  sim::Cluster& cluster_;
  std::map<std::string, agent::ListedNode> nodes_;  // null: not decoded yet, or changed since
};

}  // namespace haulout::rehearse
