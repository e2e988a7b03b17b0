// Makes a new connection to an endpoint: resolves its name, connects to the address that responds first, and performs
// the TLS handshake.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <vector>

#include "http/client.hpp"
#include "http/race.hpp"
#include "http/wire.hpp"

namespace haulout::http {

// How far an operation has progressed, for the message if its deadline passes.
enum class Phase { resolve, connect, tunnel, handshake, send, answer };
struct Progress {
  Phase phase = Phase::connect;
  std::string proxy;          // name of the proxy; empty if there is none
  std::string host;           // host of the endpoint or of the proxy, to which the addresses belong
  std::vector<Trial> trials;  // attempts of the connection that was begun last
};
// For example "it was not yet connected (10.0.0.1: connection refused; 10.0.0.2: no reaction yet)". Pure.
std::string in_words(const Progress& progress);

// "10.0.0.1:6443", "[::1]:6443" or "/run/x.sock", for messages. Pure.
std::string peer_name(const Endpoint& endpoint);

// Races the addresses (race.hpp) at the endpoint's port, connects `socket` and returns its address. Errc::unreachable,
// with the cause for each address. Cancellable. All references and pointers must outlive the call.
Task<boost::asio::ip::address> connect_to_any(Clock& clock, const Endpoint& endpoint, const ClientOptions& options,
                                              std::vector<boost::asio::ip::address> addresses,
                                              boost::asio::ip::tcp::socket& socket, std::vector<Trial>* trials);

// Errc::dns, unreachable, tls or reset; through a proxy also the errors of open_tunnel(). Cancellable. Writes its
// progress to *progress. If *address is set, that address is tried first. *address is then set to the address that
// connected.
Task<std::unique_ptr<Wire>> dial(Clock& clock, Endpoint endpoint, std::shared_ptr<TlsContext> tls,
                                 ClientOptions options, Progress* progress,
                                 std::optional<boost::asio::ip::address>* address);

}  // namespace haulout::http
