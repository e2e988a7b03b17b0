// From the Nodes and Leases of the API server to what counts against the limits of one pool. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/node/own_pool.hpp"
#include "agent/slots/slot_rules.hpp"

namespace haulout::agent {

// The pool whose slots a node takes; `name`: as groups_of() has it.
OwnPool pool_named(const SlotGrouping& grouping, const std::string& name);

struct PoolNode {
  const k8s::Node* node;
  bool counts;  // it surely belongs to the pool
};
// Those that belong to the pool, and those that may. Borrows `nodes`.
std::vector<PoolNode> nodes_of(const OwnPool& pool, const OwnNode& own, const std::vector<k8s::Node>& nodes,
                               const std::vector<k8s::Lease>& turns);

// All but the limit.
GroupView view_of(SlotGroup group, const std::string& zone_label_key, const std::vector<PoolNode>& nodes,
                  const std::vector<k8s::Lease>& slots);

// The node as one that counts; nothing when it is in service or of another pool.
std::optional<OutNode> out_of(const k8s::Node& node, const OwnPool& pool);

// Nodes that are out of service and hold no slot, each once; `but` is left out.
std::vector<OutNode> out_without_slot(const std::vector<GroupView>& views, std::string_view but);

}  // namespace haulout::agent
