// Proxies of the environment, which we do not use and kubectl does. Pure.
#pragma once

#include <string>

#include "http/client.hpp"
#include "k8s/credentials.hpp"

namespace haulout::agent {

// The variable by which kubectl would go through a proxy to `endpoint`, "HTTPS_PROXY" or "https_proxy"; empty when it
// would connect directly. By the rules of Go's httpproxy: NO_PROXY excepts names with their subdomains, addresses and
// networks, each with or without a port, or everything ("*"); what is on this machine is always reached directly.
std::string proxy_variable(const k8s::Environment& environment, const http::Endpoint& endpoint);

}  // namespace haulout::agent
