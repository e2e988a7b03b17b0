// Prepares the simulated cluster for the rehearsal of a fleet: removes the traces of earlier updates from the loaded
// snapshot, and reads the longest grace period of its pods. No I/O.
#pragma once

#include <string>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "sim/cluster.hpp"

namespace haulout::rehearse {

// What forget_haulout() has removed and the report of the rehearsal mentions.
struct Forgotten {
  std::vector<std::string> pauses;     // what was paused: "node/a", "the ConfigMap haulout/haulout"
  std::vector<std::string> hooks;      // nodes with annotation hooks, to which other programs would respond
  std::vector<std::string> half_done;  // nodes that an agent had cordoned for an update
};

// Removes from the simulated cluster what agents have written: their labels, annotations and cordons, and all Leases.
// Removes pauses, requests and hooks, because they would keep the simulation from ending or are not simulated. Removes
// managed fields and images of Nodes, because they are large and not needed. Creates the namespace of the agents if it
// does not exist. To be called before the cluster runs.
Forgotten forget_haulout(sim::Cluster& cluster, const agent::AgentConfig& config);

// Returns the longest grace period of all pods, but at least Kubernetes' default of 30 s.
Duration longest_grace(const sim::Cluster& cluster);

}  // namespace haulout::rehearse
