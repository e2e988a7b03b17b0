// A fresh connection to an endpoint: resolve, connect to one address after the other, shake hands.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <vector>

#include "http/client.hpp"
#include "http/wire.hpp"

namespace haulout::http {

// How far an operation got, for the message when its deadline strikes.
enum class Phase { resolve, connect, tunnel, handshake, send, answer };
std::string_view to_string(Phase phase);

// "10.0.0.1:6443", "[::1]:6443" or "/run/x.sock"; for messages.
std::string peer_name(const Endpoint& endpoint);

// Tries them in turn, each for as long as options.connect_timeout; the first that takes the connection has the socket.
// Errc::unreachable with every cause. Cancellable.
Task<> connect_to_any(Clock& clock, const Endpoint& endpoint, const ClientOptions& options,
                      const std::vector<boost::asio::ip::address>& addresses, boost::asio::ip::tcp::socket& socket);

// Errc::dns, unreachable, tls or reset; with a proxy those of open_tunnel(), too. Cancellable. Writes to *phase as it
// goes.
Task<std::unique_ptr<Wire>> dial(Clock& clock, Endpoint endpoint, std::shared_ptr<TlsContext> tls,
                                 ClientOptions options, Phase* phase);

}  // namespace haulout::http
