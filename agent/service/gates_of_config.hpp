// Makes the options of the gates from a configuration. Errors name the option, the cause and the remedy. Does not
// contact a server.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "agent/config/agent_config.hpp"
#include "agent/gates/node_gates.hpp"
#include "k8s/auth_transport.hpp"

namespace haulout::agent {

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
