// The gate "cordon": a node that a person has cordoned is that person's workplace. Pure.
#pragma once

#include "agent/gates/gate_keeper.hpp"
#include "agent/node/node_cordon.hpp"

namespace haulout::agent {

// Closed (CordonedByPerson) while the node carries a cordon that no agent has set. It gives up a drain that has not
// cordoned the node yet. Off with `update`, and about a drain of which the node's cordon is a part.
Gate cordon_gate(const k8s::Node& node, const Record& record, CordonedNodes policy);

}  // namespace haulout::agent
