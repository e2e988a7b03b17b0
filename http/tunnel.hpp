// The handshake with a proxy on a new connection to it.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "http/client.hpp"

namespace haulout::http {

// For example "the proxy squid.corp:3128 (HTTPS_PROXY)", for messages. Pure.
std::string name_of(const Proxy& proxy);

// Asks the proxy to connect to `target`. Afterwards `socket` carries data to `target`. Cancellable. Errc::unreachable
// if the proxy cannot connect or disconnects, which may be temporary. Errc::unavailable if it refuses, for example
// because of credentials or its rules. Errc::protocol if it is not such a proxy. Errc::invalid if the name of `target`
// is too long for SOCKS5. `socket`, `proxy` and `target` must outlive the call.
Task<> open_tunnel(boost::asio::ip::tcp::socket& socket, const Proxy& proxy, const Endpoint& target);

}  // namespace haulout::http
