// Converts the configuration to the options of each part of the agent, and makes the transport to Prometheus. Errors
// name the option, the cause and the remedy. Does not contact a server. Pure, except gates_of_config(), which reads
// zoneinfo, and prometheus_transport(), which reads files.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <string>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "agent/gates/node_gates.hpp"
#include "agent/lifecycle/agent.hpp"
#include "drain/options.hpp"
#include "k8s/auth_transport.hpp"

namespace haulout::agent {

// Sets how the drain waits for volumes, unless the option for that is off. `permitted` says whether the agent may read
// VolumeAttachments and PersistentVolumes, as found at the start. If not, the drain does not wait for volumes. If so,
// it requires them to be detached. A later refusal then never counts as detached (P4 in docs/reliability.md).
void suit_volumes(drain::Options& options, bool permitted);
LifecycleTimes times_of(const AgentConfig& config);
// Returns the options of the agent, except the name of its node and those that depend on its credential. The result
// borrows `config`.
AgentOptions agent_options_of(const AgentConfig& config);
// Returns the files in which kubelets store their kubeconfig: kubeadm, the kubelet's own default, K3s, RKE2.
std::vector<std::string> kubelet_kubeconfigs(const std::string& host_root);

// Fails with Errc::invalid or Errc::unavailable if a window cannot be used. `own_pool` returns the pool in which the
// node gets its slot.
Result<NodeGatesOptions> gates_of_config(const AgentConfig& config, std::string node,
                                         std::function<OwnPool(const k8s::Node&)> own_pool);

// Makes the transport to Prometheus from address, certificates and bearer token. Reads the files again when they
// change. Returns null if the configuration names no Prometheus. Fails with Errc::unavailable if a file is missing or
// invalid. Borrows `clock`.
Result<std::unique_ptr<k8s::AuthTransport>> prometheus_transport(boost::asio::any_io_executor executor, Clock& clock,
                                                                 const AgentConfig& config, std::string user_agent);

}  // namespace haulout::agent
