// Chooses the proxy to the API server, as kubectl does. Pure.
#pragma once

#include "k8s/credentials.hpp"

namespace haulout::k8s {

// Sets the proxy of the connection. The proxy-url of the cluster's entry, which the connection already has, comes
// first. Otherwise HTTPS_PROXY or https_proxy applies, by the rules of Go's httpproxy. NO_PROXY lists exceptions: names
// with their subdomains, addresses and networks, each with or without a port, or everything ("*"). Addresses of this
// machine and endpoints without TLS are reached directly. Errc::unavailable if the variable is not a valid proxy URL.
Result<> choose_proxy(Connection& connection, const Environment& environment);

}  // namespace haulout::k8s
