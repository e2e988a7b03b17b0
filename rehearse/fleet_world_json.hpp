// Prepares the simulated cluster for the rehearsal of a fleet: removes traces of earlier updates from the loaded
// snapshot, and reads the longest grace period of its pods. No I/O.
#pragma once

#include <string>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "sim/cluster.hpp"

namespace haulout::rehearse {

// What forget_haulout() has removed, as far as the report of the rehearsal should mention it.
struct Forgotten {
  std::vector<std::string> pauses;     // what was paused: "node/a", "the ConfigMap haulout/haulout"
  std::vector<std::string> hooks;      // nodes with hooks that other programs answer
  std::vector<std::string> half_done;  // nodes that an agent had cordoned
};

// Removes from the simulated cluster what agents have written: their labels, annotations and cordons, and all Leases.
// Removes pauses, requests and hooks, which would keep the simulation from its end or are not simulated. Removes
// managed fields and images, which are not needed and make Nodes large. Creates the namespace of the agents if it is
// missing. Call it before the cluster runs.
Forgotten forget_haulout(sim::Cluster& cluster, const agent::AgentConfig& config);

// Returns the longest grace period of all pods, at least the default of 30 s.
Duration longest_grace(const sim::Cluster& cluster);

}  // namespace haulout::rehearse
