// A fresh connection to an endpoint: resolve, connect to the address that reacts first, shake hands.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <vector>

#include "http/client.hpp"
#include "http/race.hpp"
#include "http/wire.hpp"

namespace haulout::http {

// How far an operation got, for the message when its deadline strikes.
enum class Phase { resolve, connect, tunnel, handshake, send, answer };
struct Progress {
  Phase phase = Phase::connect;
  std::string proxy;          // its name, if there is one
  std::string host;           // the endpoint's, or the proxy's: to which the addresses belong
  std::vector<Trial> trials;  // of the connection that was last begun
};
// "it was not yet connected (10.0.0.1: connection refused; 10.0.0.2: no reaction yet)"
std::string in_words(const Progress& progress);

// "10.0.0.1:6443", "[::1]:6443" or "/run/x.sock"; for messages.
std::string peer_name(const Endpoint& endpoint);

// The addresses race (race.hpp) for the endpoint's port; the one that has the socket is returned. Errc::unreachable
// with their causes. Cancellable. What the references and the pointer name must outlive the call.
Task<boost::asio::ip::address> connect_to_any(Clock& clock, const Endpoint& endpoint, const ClientOptions& options,
                                              std::vector<boost::asio::ip::address> addresses,
                                              boost::asio::ip::tcp::socket& socket, std::vector<Trial>* trials);

// Errc::dns, unreachable, tls or reset; with a proxy those of open_tunnel(), too. Cancellable. Writes to *progress as
// it goes. *address, if set, is the first to be tried; it becomes the one that connected.
Task<std::unique_ptr<Wire>> dial(Clock& clock, Endpoint endpoint, std::shared_ptr<TlsContext> tls,
                                 ClientOptions options, Progress* progress,
                                 std::optional<boost::asio::ip::address>* address);

}  // namespace haulout::http
