#include "http/dial.hpp"

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/cancelled.hpp"
#include "http/resolve.hpp"
#include "http/tunnel.hpp"
#include "retry/deadline.hpp"

namespace haulout::http {
namespace asio = boost::asio;
namespace {

using Ec = boost::system::error_code;
using tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;

Error no_connection(const std::string& peer, const std::string& cause) {
  return Error(Errc::unreachable, fmt::format("no connection to {}: {}", peer, cause));
}

std::string in_words(const Ec& failure) {
  if (failure == asio::error::connection_refused) return "connection refused (nothing listens there)";
  return failure.message();
}

template <class Socket, class Address>
Task<> connect(Socket& socket, Address address) {
  auto [failure] = co_await socket.async_connect(address, asio::as_tuple(asio::use_awaitable));
  unwind_if_cancelled(failure);
  if (failure) co_return Error(Errc::unreachable, in_words(failure));
  co_return Result<>();
}

std::string seconds(Duration duration) {
  return fmt::format("{:g} s", std::chrono::duration<double>(duration).count());
}

Task<> connect_tcp(tcp::socket& socket, tcp::endpoint target) {
  Ec failure;
  socket.open(target.protocol(), failure);
  if (failure) co_return Error(Errc::unreachable, failure.message());
  CO_CHECK(co_await connect(socket, target));
  // Disables Nagle's algorithm: a small request must not wait for the peer's delayed acknowledgement.
  socket.set_option(tcp::no_delay(true), failure);
  co_return Result<>();
}

Task<std::unique_ptr<Wire>> dial_unix(const Endpoint& endpoint) {
  Local::socket socket(co_await asio::this_coro::executor);
  if (endpoint.host.size() >= sizeof(sockaddr_un::sun_path))
    co_return no_connection(endpoint.host, "the path is too long for a unix socket");
  auto connected = co_await connect(socket, Local::endpoint(endpoint.host));
  if (!connected) co_return no_connection(endpoint.host, connected.error().message());
  co_return plain_wire(std::move(socket));
}

}  // namespace

std::string in_words(const Progress& progress) {
  switch (progress.phase) {
    case Phase::resolve: return "its name was still being looked up";
    case Phase::connect:
      if (progress.trials.empty()) return "it was not yet connected";
      return fmt::format("it was not yet connected ({}{}{})", progress.proxy, progress.proxy.empty() ? "" : ": ",
                         in_words(progress.trials, progress.host));
    case Phase::tunnel: return "the proxy had not yet connected to it";
    case Phase::handshake: return "it was connected, but the TLS handshake was not complete";
    case Phase::send: return "the request was not yet sent";
    case Phase::answer: return "the request was sent, but the answer was not complete";
  }
  return "";
}

std::string peer_name(const Endpoint& endpoint) {
  if (endpoint.kind == Endpoint::Kind::unix_socket) return endpoint.host;
  return endpoint.host.find(':') == std::string::npos ? fmt::format("{}:{}", endpoint.host, endpoint.port)
                                                      : fmt::format("[{}]:{}", endpoint.host, endpoint.port);
}

Task<asio::ip::address> connect_to_any(Clock& clock, const Endpoint& endpoint, const ClientOptions& options,
                                       std::vector<asio::ip::address> addresses, tcp::socket& socket,
                                       std::vector<Trial>* trials) {
  const RaceLimits limits{options.next_address_after, options.connect_timeout};
  const ConnectOne connect_one = [port = endpoint.port](tcp::socket& to, asio::ip::address address) {
    return connect_tcp(to, {address, port});
  };
  auto connected =
      co_await connect_to_first(clock, limits, endpoint.host, std::move(addresses), connect_one, socket, trials);
  if (!connected) co_return no_connection(peer_name(endpoint), connected.error().message());
  co_return connected;
}

namespace {

Task<> connect_to(Clock& clock, const Endpoint& endpoint, const ClientOptions& options, Progress* progress,
                  std::optional<asio::ip::address>* address, tcp::socket& socket) {
  progress->phase = Phase::resolve;
  progress->host = endpoint.host;
  CO_TRY(auto addresses, co_await resolve(endpoint.host));
  progress->phase = Phase::connect;
  CO_TRY(*address, co_await connect_to_any(clock, endpoint, options, order_of_trial(std::move(addresses), *address),
                                           socket, &progress->trials));
  co_return Result<>();
}

Task<> connect_through(Clock& clock, const Endpoint& endpoint, const ClientOptions& options, Progress* progress,
                       std::optional<asio::ip::address>* address, tcp::socket& socket) {
  const Proxy& proxy = *options.proxy;
  progress->proxy = name_of(proxy);
  const Endpoint hop{Endpoint::Kind::tcp, proxy.host, proxy.port};
  if (auto connected = co_await connect_to(clock, hop, options, progress, address, socket); !connected)
    co_return std::move(connected).error().with_context(name_of(proxy));
  progress->phase = Phase::tunnel;
  const auto until = saturating_add(clock.now(), options.handshake_timeout);
  auto opened = co_await with_deadline(clock, until, open_tunnel(socket, proxy, endpoint));
  if (!opened && opened.error().code() == Errc::timeout)
    co_return Error(Errc::unreachable, fmt::format("{} did not connect to {} within {}", name_of(proxy),
                                                   peer_name(endpoint), seconds(options.handshake_timeout)));
  co_return opened;
}

}  // namespace

Task<std::unique_ptr<Wire>> dial(Clock& clock, Endpoint endpoint, std::shared_ptr<TlsContext> tls,
                                 ClientOptions options, Progress* progress, std::optional<asio::ip::address>* address) {
  *progress = {};
  if (endpoint.kind == Endpoint::Kind::unix_socket) co_return co_await dial_unix(endpoint);
  tcp::socket socket(co_await asio::this_coro::executor);
  CO_CHECK(co_await (options.proxy ? connect_through(clock, endpoint, options, progress, address, socket)
                                   : connect_to(clock, endpoint, options, progress, address, socket)));
  if (endpoint.kind == Endpoint::Kind::tcp) co_return plain_wire(std::move(socket));

  progress->phase = Phase::handshake;
  const std::string host = tls->server_name().empty() ? endpoint.host : tls->server_name();
  const auto until = saturating_add(clock.now(), options.handshake_timeout);
  auto wire = co_await with_deadline(clock, until,
                                     tls_client_wire(std::move(socket), std::move(tls), host, peer_name(endpoint)));
  if (!wire && wire.error().code() == Errc::timeout) {
    co_return Error(Errc::unreachable,
                    fmt::format("{} accepted the connection but did not answer the TLS handshake within {}",
                                peer_name(endpoint), seconds(options.handshake_timeout)));
  }
  co_return wire;
}

}  // namespace haulout::http
