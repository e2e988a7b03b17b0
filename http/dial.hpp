// Makes a new connection to an endpoint: resolves its name, connects to the address that responds first (through a
// proxy if one is set), and performs the TLS handshake.
//
// It connects to the first of a server's addresses that responds (RFC 8305, "happy eyeballs"). A dead address therefore
// delays the connection by `next_after`, not by the whole time limit of an attempt.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/client.hpp"
#include "http/wire.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::http {

// Returns the addresses in the order in which they are tried. `preferred` comes first if it is in the list. IPv4 and
// IPv6 addresses alternate, beginning with the family of the first address. Each family keeps its order. Pure.
std::vector<boost::asio::ip::address> order_of_trial(std::vector<boost::asio::ip::address> addresses,
                                                     const std::optional<boost::asio::ip::address>& preferred);

// State of the attempt to connect to one address.
struct Trial {
  boost::asio::ip::address address;
  std::optional<std::string> failure;  // unset while the attempt is in progress
};

// Describes the attempts in words, for example "10.0.0.1: no reaction within 5 s; fd00::1: no reaction yet; and 3
// more". Omits an address that is equal to `host`. Pure.
std::string in_words(const std::vector<Trial>& trials, std::string_view host);

struct RaceLimits {
  Duration next_after;   // time from the start of one attempt to the start of the next
  Duration per_address;  // an attempt fails if it takes longer
};

// Opens and connects the socket. Its error message describes the failure without naming the address.
using ConnectOne = std::function<Task<>(boost::asio::ip::tcp::socket&, boost::asio::ip::address)>;

// Tries the addresses in order. Starts each further attempt when the previous one has failed, or `next_after` after it
// began. When an attempt connects, cancels and closes all others, moves its socket to `socket` and returns its address.
// Fails with Errc::unreachable, with the text of in_words(), if all attempts have failed. Writes each attempt to
// *trials. Cancellable. `clock`, `socket` and `trials` must outlive the call.
Task<boost::asio::ip::address> connect_to_first(Clock& clock, RaceLimits limits, std::string host,
                                                std::vector<boost::asio::ip::address> addresses, ConnectOne connect_one,
                                                boost::asio::ip::tcp::socket& socket, std::vector<Trial>* trials);

// Returns the name of the proxy for messages, for example "the proxy squid.corp:3128 (HTTPS_PROXY)". Pure.
std::string name_of(const Proxy& proxy);

// Performs the handshake with a proxy on a new connection to it.
// Requests that the proxy connect to `target`. Afterwards `socket` carries data to `target`. Fails with
// Errc::unreachable if the proxy cannot connect or disconnects, which may be temporary; with Errc::unavailable if it
// refuses, for example because of credentials or its rules; with Errc::protocol if it is not such a proxy; with
// Errc::invalid if the name of `target` is too long for SOCKS5. Cancellable. `socket`, `proxy` and `target` must
// outlive the call.
Task<> open_tunnel(boost::asio::ip::tcp::socket& socket, const Proxy& proxy, const Endpoint& target);

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

// Connects `socket` to the endpoint's port at the first of the addresses that responds, and returns that
// address. Fails with Errc::unreachable; the message has the cause for each address. Cancellable. All references and
// pointers must outlive the call.
Task<boost::asio::ip::address> connect_to_any(Clock& clock, const Endpoint& endpoint, const ClientOptions& options,
                                              std::vector<boost::asio::ip::address> addresses,
                                              boost::asio::ip::tcp::socket& socket, std::vector<Trial>* trials);

// Connects to the endpoint. Fails with Errc::dns, unreachable, tls or reset, and through a proxy also with the errors
// of open_tunnel(). Cancellable. Writes its progress to *progress. If *address is set, that address is tried first. On
// success *address is the address that connected; a unix socket leaves *address unchanged.
Task<std::unique_ptr<Wire>> dial(Clock& clock, Endpoint endpoint, std::shared_ptr<TlsContext> tls,
                                 ClientOptions options, Progress* progress,
                                 std::optional<boost::asio::ip::address>* address);

}  // namespace haulout::http
