// Which proxy leads to the API server, as kubectl decides. Pure.
#pragma once

#include "k8s/credentials.hpp"

namespace haulout::k8s {

// The proxy-url of the cluster's entry, which the connection has already, comes first. Else HTTPS_PROXY, or
// https_proxy, by the rules of Go's httpproxy: NO_PROXY excepts names with their subdomains, addresses and networks,
// each with or without a port, or everything ("*"); what is on this machine, and what does not speak TLS, is reached
// directly. Errc::unavailable when the variable makes no sense.
Result<> choose_proxy(Connection& connection, const Environment& environment);

}  // namespace haulout::k8s
