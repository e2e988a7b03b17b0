// The handshake with a proxy, on a fresh connection to it.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "http/client.hpp"

namespace haulout::http {

// "the proxy squid.corp:3128 (HTTPS_PROXY)"; for messages.
std::string name_of(const Proxy& proxy);

// Has the proxy connect to `target`; afterwards whatever is sent goes there. Cancellable. Errc::unreachable when the
// proxy cannot connect or goes away, which may heal; unavailable when it will not (it wants credentials, or has rules);
// protocol when it is no such proxy. `socket`, `proxy` and `target` must outlive the call.
Task<> open_tunnel(boost::asio::ip::tcp::socket& socket, const Proxy& proxy, const Endpoint& target);

}  // namespace haulout::http
