// Performs the handshake with a proxy on a new connection to it.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "http/client.hpp"

namespace haulout::http {

// Returns the name of the proxy for messages, for example "the proxy squid.corp:3128 (HTTPS_PROXY)". Pure.
std::string name_of(const Proxy& proxy);

// Requests that the proxy connect to `target`. Afterwards `socket` carries data to `target`. Fails with
// Errc::unreachable if the proxy cannot connect or disconnects, which may be temporary; with Errc::unavailable if it
// refuses, for example because of credentials or its rules; with Errc::protocol if it is not such a proxy; with
// Errc::invalid if the name of `target` is too long for SOCKS5. Cancellable. `socket`, `proxy` and `target` must
// outlive the call.
Task<> open_tunnel(boost::asio::ip::tcp::socket& socket, const Proxy& proxy, const Endpoint& target);

}  // namespace haulout::http
