// The gate "cordon": the agent does not update a node that a person has cordoned. Pure.
#pragma once

#include "agent/gates/gate_keeper.hpp"
#include "agent/node/node_cordon.hpp"

namespace haulout::agent {

// Closed (CordonedByPerson) while the node has a cordon that no agent has set. A closed gate makes the agent give up a
// drain that has not cordoned the node yet. Off if `policy` is `update`. Open if the cordon belongs to the agent's
// current drain.
Gate cordon_gate(const k8s::Node& node, const Record& record, CordonedNodes policy);

}  // namespace haulout::agent
