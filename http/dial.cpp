#include "http/dial.hpp"

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

Task<> connect_within(Clock& clock, Duration limit, tcp::socket& socket, tcp::endpoint address) {
  auto connected =
      co_await with_deadline(clock, saturating_add(clock.now(), limit), connect(socket, std::move(address)));
  if (!connected && connected.error().code() == Errc::timeout)
    co_return Error(Errc::unreachable, "no reaction within " + seconds(limit));
  co_return connected;
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

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::resolve: return "its name was still being looked up";
    case Phase::connect: return "it was not yet connected";
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

Task<> connect_to_any(Clock& clock, const Endpoint& endpoint, const ClientOptions& options,
                      const std::vector<asio::ip::address>& addresses, asio::ip::tcp::socket& socket) {
  std::string causes;
  for (const auto& address : addresses) {
    const tcp::endpoint target(address, endpoint.port);
    Ec failure;
    socket.close(failure);
    socket.open(target.protocol(), failure);
    auto connected = failure ? Result<>(Error(Errc::unreachable, failure.message()))
                             : co_await connect_within(clock, options.connect_timeout, socket, target);
    if (connected) {
      // Small requests must not wait for the peer's delayed acknowledgement.
      socket.set_option(tcp::no_delay(true), failure);
      co_return Result<>();
    }
    const bool literal = address.to_string() == endpoint.host;
    causes += (causes.empty() ? "" : "; ") + (literal ? "" : address.to_string() + ": ") + connected.error().message();
  }
  co_return no_connection(peer_name(endpoint), causes);
}

namespace {

Task<> connect_to(Clock& clock, const Endpoint& endpoint, const ClientOptions& options, Phase* phase,
                  tcp::socket& socket) {
  *phase = Phase::resolve;
  CO_TRY(const auto addresses, co_await resolve(endpoint.host));
  *phase = Phase::connect;
  co_return co_await connect_to_any(clock, endpoint, options, addresses, socket);
}

Task<> connect_through(Clock& clock, const Endpoint& endpoint, const ClientOptions& options, Phase* phase,
                       tcp::socket& socket) {
  const Proxy& proxy = *options.proxy;
  const Endpoint hop{Endpoint::Kind::tcp, proxy.host, proxy.port};
  if (auto connected = co_await connect_to(clock, hop, options, phase, socket); !connected)
    co_return std::move(connected).error().with_context(name_of(proxy));
  *phase = Phase::tunnel;
  const auto until = saturating_add(clock.now(), options.handshake_timeout);
  auto opened = co_await with_deadline(clock, until, open_tunnel(socket, proxy, endpoint));
  if (!opened && opened.error().code() == Errc::timeout)
    co_return Error(Errc::unreachable, fmt::format("{} did not connect to {} within {}", name_of(proxy),
                                                   peer_name(endpoint), seconds(options.handshake_timeout)));
  co_return opened;
}

}  // namespace

Task<std::unique_ptr<Wire>> dial(Clock& clock, Endpoint endpoint, std::shared_ptr<TlsContext> tls,
                                 ClientOptions options, Phase* phase) {
  *phase = Phase::connect;
  if (endpoint.kind == Endpoint::Kind::unix_socket) co_return co_await dial_unix(endpoint);
  tcp::socket socket(co_await asio::this_coro::executor);
  CO_CHECK(co_await (options.proxy ? connect_through(clock, endpoint, options, phase, socket)
                                   : connect_to(clock, endpoint, options, phase, socket)));
  if (endpoint.kind == Endpoint::Kind::tcp) co_return plain_wire(std::move(socket));

  *phase = Phase::handshake;
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
