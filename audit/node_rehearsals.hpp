// Rehearses the drain of each node by itself, in a world of its own. Blocks until the simulation is over. No I/O.
//
// A world has all nodes, but only the pods that matter for the drain: those of the node, those of the same owners and
// those that share a budget with them, the ones that wait for a node, and the ones that are terminating. The other pods
// only take room, so what they request is taken off their nodes instead.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "audit/report.hpp"
#include "audit/world.hpp"
#include "rehearse/rehearsal.hpp"

namespace haulout::audit {

// The objects of the world in which the drain of the node is rehearsed.
std::vector<sim::Json> world_for(const World& world, const std::string& node);

// Rehearses the drain of the node. Fails if the simulation does not end.
Result<rehearse::Rehearsal> rehearse_node(const World& world, const std::string& node,
                                          const rehearse::Assumptions& assumptions);

// Fills in the verdict, the time and the pods of a node from its rehearsal.
void tell(NodeResult& result, const World& world, const rehearse::Rehearsal& rehearsal);

}  // namespace haulout::audit
