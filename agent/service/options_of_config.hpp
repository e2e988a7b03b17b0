// From the configuration to what each part of the agent wants to know. Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/config/option.hpp"
#include "agent/lifecycle/agent.hpp"
#include "drain/options.hpp"

namespace haulout::agent {

drain::Options drain_options_of(const AgentConfig& config);
// Whether VolumeAttachments and PersistentVolumes may be read was found out at the start. Where they may not, nobody
// waits for them; where they may, that is what it takes to be drained, and a refusal later on lets no volume go (P4).
void suit_volumes(drain::Options& options, bool permitted);
LifecycleTimes times_of(const AgentConfig& config);
// All but the node and what its credential allows. Borrows the configuration.
AgentOptions agent_options_of(const AgentConfig& config);
// Where kubelets leave their kubeconfig: kubeadm, the kubelet's own default, K3s, RKE2.
std::vector<std::string> kubelet_kubeconfigs(const std::string& host_root);

}  // namespace haulout::agent
