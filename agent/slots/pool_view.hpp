// Computes from Nodes and Leases what counts against the limits of one pool. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/node/own_pool.hpp"
#include "agent/slots/slot_rules.hpp"

namespace haulout::agent {

// Returns the pool of a node. `name` is the name of the pool in the result of groups_of().
OwnPool pool_named(const SlotGrouping& grouping, const std::string& name);

struct PoolNode {
  const k8s::Node* node;
  bool counts;  // true if it certainly belongs to the pool, false if its pool is unknown
};
// Returns the nodes that belong to the pool, and those whose pool is unknown. Borrows `nodes`. `turns` holds the Leases
// of all pools.
std::vector<PoolNode> nodes_of(const OwnPool& pool, const OwnNode& own, const std::vector<k8s::Node>& nodes,
                               const std::vector<k8s::Lease>& turns);

// Fills all fields of the view except `limit` and `as_of`.
GroupView view_of(SlotGroup group, const std::string& zone_label_key, const std::vector<PoolNode>& nodes,
                  const std::vector<k8s::Lease>& slots);

// Returns the node if it counts as unavailable. Returns nothing if it is available or belongs to another pool.
std::optional<OutNode> out_of(const k8s::Node& node, const OwnPool& pool);

// Returns the unavailable nodes that hold no slot, each once, without the node named `but`.
std::vector<OutNode> out_without_slot(const std::vector<GroupView>& views, std::string_view but);

}  // namespace haulout::agent
