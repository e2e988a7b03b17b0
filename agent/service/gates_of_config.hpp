// The gates that a configuration asks for. Errors name the option, the cause and the way out.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "agent/config/option.hpp"
#include "agent/gates/node_gates.hpp"
#include "k8s/auth_transport.hpp"

namespace haulout::agent {

// Errc::invalid or Errc::unavailable for a window that cannot be used. `own_pool` is the
// pool of the turns.
Result<NodeGatesOptions> gates_of_config(const AgentConfig& config, std::string node,
                                         std::function<OwnPool(const k8s::Node&)> own_pool);

// The way to Prometheus: address, certificates and bearer token, which are read again when they change. Nothing when
// the configuration names none. Errc::unavailable: a file is missing or is not what it should be.
Result<std::unique_ptr<k8s::AuthTransport>> prometheus_transport(boost::asio::any_io_executor executor, Clock& clock,
                                                                 const AgentConfig& config, std::string user_agent);

}  // namespace haulout::agent
