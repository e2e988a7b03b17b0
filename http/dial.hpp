// Makes a new connection to an endpoint: resolves its name, connects to the address that responds first (through a
// proxy if one is set), and performs the TLS handshake.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <vector>

#include "http/client.hpp"
#include "http/race.hpp"
#include "http/wire.hpp"

namespace haulout::http {

// Progress of an operation, for the message if its deadline passes.
enum class Phase { resolve, connect, tunnel, handshake, send, answer };
struct Progress {
  Phase phase = Phase::connect;
  std::string proxy;          // name of the proxy; empty if there is none
  std::string host;           // host of the endpoint or of the proxy, to which the addresses belong
  std::vector<Trial> trials;  // attempts made for the most recent connection, one per address
};
// Describes the progress in words, for example "it was not yet connected (10.0.0.1: connection refused; 10.0.0.2: no
// reaction yet)". Pure.
std::string in_words(const Progress& progress);

// Returns the address for messages: "10.0.0.1:6443", "[::1]:6443" or "/run/x.sock". Pure.
std::string peer_name(const Endpoint& endpoint);

// Connects `socket` to the endpoint's port at the first of the addresses that responds (race.hpp), and returns that
// address. Fails with Errc::unreachable; the message has the cause for each address. Cancellable. All references and
// pointers must outlive the call.
Task<boost::asio::ip::address> connect_to_any(Clock& clock, const Endpoint& endpoint, const ClientOptions& options,
                                              std::vector<boost::asio::ip::address> addresses,
                                              boost::asio::ip::tcp::socket& socket, std::vector<Trial>* trials);

// Connects to the endpoint. Fails with Errc::dns, unreachable, tls or reset, and through a proxy also with the errors
// of open_tunnel(). Cancellable. Writes its progress to *progress. If *address is set, that address is tried first.
// *address is then set to the address that connected.
Task<std::unique_ptr<Wire>> dial(Clock& clock, Endpoint endpoint, std::shared_ptr<TlsContext> tls,
                                 ClientOptions options, Progress* progress,
                                 std::optional<boost::asio::ip::address>* address);

}  // namespace haulout::http
