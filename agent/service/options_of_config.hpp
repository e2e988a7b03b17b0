// Converts the configuration to the options of each part of the agent. Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "agent/lifecycle/agent.hpp"
#include "drain/options.hpp"

namespace haulout::agent {

// `permitted` says whether the agent may read VolumeAttachments and PersistentVolumes, as found at the start. If not,
// the drain does not wait for volumes. If so, it requires them to be detached. A later refusal then never counts as
// detached (P4 in docs/reliability.md).
void suit_volumes(drain::Options& options, bool permitted);
LifecycleTimes times_of(const AgentConfig& config);
// Sets all options except the node and the ones that depend on its credential. The result borrows `config`.
AgentOptions agent_options_of(const AgentConfig& config);
// Returns the files in which kubelets store their kubeconfig: kubeadm, the kubelet's own default, K3s, RKE2.
std::vector<std::string> kubelet_kubeconfigs(const std::string& host_root);

}  // namespace haulout::agent
