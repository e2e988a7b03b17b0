// What a rehearsal of a fleet changes about its snapshot before it begins, and reads from it.
#pragma once

#include <string>
#include <vector>

#include "agent/config/option.hpp"
#include "sim/cluster.hpp"

namespace haulout::rehearse {

// What was taken away and matters to whoever reads the result.
struct Forgotten {
  std::vector<std::string> pauses;     // "node/a", "the ConfigMap haulout/haulout"
  std::vector<std::string> hooks;      // nodes with hooks that others answer
  std::vector<std::string> half_done;  // nodes that an agent had cordoned
};

// Takes away what agents have written (labels, annotations, cordons of theirs, Leases), what would keep the play from
// its end or is not played (pauses, requests, hooks), and what nobody reads but makes Nodes large. Sees to the
// namespace of the agents. Call it before the cluster runs.
Forgotten forget_haulout(sim::Cluster& cluster, const agent::AgentConfig& config);

// The longest grace period of its pods.
Duration longest_grace(const sim::Cluster& cluster);

}  // namespace haulout::rehearse
