#include "http/dial.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "http/base64.hpp"
#include "http/parser.hpp"
#include "http/resolve.hpp"
#include "http/wire.hpp"
#include "retry/deadline.hpp"
#include "retry/notifier.hpp"
#include "retry/task_group.hpp"

namespace haulout::http {
namespace asio = boost::asio;
namespace {

using asio::ip::tcp;
using Address = asio::ip::address;

class Race {
 public:
  Race(const asio::any_io_executor& executor, Clock& clock, RaceLimits limits, const ConnectOne& connect_one,
       tcp::socket& socket, std::vector<Trial>& trials)
      : clock_(clock), limits_(limits), connect_one_(connect_one), socket_(socket), trials_(trials), news_(executor) {}

  asio::awaitable<void> run(TaskGroup& group, const std::vector<Address>& addresses);
  const std::optional<Address>& winner() const { return winner_; }

 private:
  asio::awaitable<void> try_one(std::size_t index);

  Clock& clock_;
  RaceLimits limits_;
  const ConnectOne& connect_one_;
  tcp::socket& socket_;
  std::vector<Trial>& trials_;
  Notifier news_;  // notified when an address has connected, failed or timed out
  std::size_t under_way_ = 0;
  std::optional<Address> winner_;
};

asio::awaitable<void> Race::run(TaskGroup& group, const std::vector<Address>& addresses) {
  for (const Address& address : addresses) {
    const std::size_t index = trials_.size();
    trials_.push_back({address, {}});
    ++under_way_;
    group.spawn(try_one(index));
    const TimePoint next = saturating_add(clock_.now(), limits_.next_after);
    bool early = true;
    while (early && !winner_ && !trials_[index].failure) early = co_await news_.wait_until(clock_, next);
    if (winner_) co_return;
  }
  while (!winner_ && under_way_ > 0) co_await news_.wait_until(clock_, TimePoint::max());
}

asio::awaitable<void> Race::try_one(std::size_t index) {
  const Address address = trials_[index].address;
  tcp::socket socket(co_await asio::this_coro::executor);
  auto connected =
      co_await with_deadline(clock_, saturating_add(clock_.now(), limits_.per_address), connect_one_(socket, address));
  --under_way_;
  if (winner_) co_return;
  if (connected) {
    socket_ = std::move(socket);
    winner_ = address;
  } else {
    const bool silent = connected.error().code() == Errc::timeout;
    const double seconds = std::chrono::duration<double>(limits_.per_address).count();
    trials_[index].failure =
        silent ? fmt::format("no reaction within {:g} s (wrong address, machine down, or a firewall drops the packets)",
                             seconds)
               : connected.error().message();
  }
  news_.notify();
}

using Ec = boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr std::size_t longest_head = std::size_t{16} * 1024;  // limit of the proxy's response head, in bytes

class Handshake {
 public:
  Handshake(tcp::socket& socket, const Proxy& proxy, const Endpoint& target)
      : socket_(socket), proxy_(proxy), target_(target) {}

  Task<> connect_by_http();
  Task<> connect_by_socks();

 private:
  Task<> log_in_to_socks();
  Task<> write(std::string bytes);
  Task<std::string> read(std::size_t bytes);

  Error went_away(const Ec& failure) const {
    return Error(Errc::unreachable, fmt::format("{} closed the connection before it had connected to {}: {}",
                                                name_of(proxy_), peer_name(target_), failure.message()));
  }
  Error cannot(Errc code, std::string_view why) const {
    return Error(code, fmt::format("{} does not connect to {}: {}", name_of(proxy_), peer_name(target_), why));
  }
  Error not_a_proxy(std::string_view kind) const {
    return Error(Errc::protocol,
                 fmt::format("{} does not answer like the expected {}; check its address", name_of(proxy_), kind));
  }

  tcp::socket& socket_;
  const Proxy& proxy_;
  const Endpoint& target_;
};

Task<> Handshake::write(std::string bytes) {
  const auto [failure, written] =
      co_await asio::async_write(socket_, asio::buffer(bytes), asio::as_tuple(asio::use_awaitable));
  unwind_if_cancelled(failure);
  if (failure) co_return went_away(failure);
  co_return Result<>();
}

Task<std::string> Handshake::read(std::size_t bytes) {
  std::string text(bytes, '\0');
  const auto [failure, count] =
      co_await asio::async_read(socket_, asio::buffer(text), asio::as_tuple(asio::use_awaitable));
  unwind_if_cancelled(failure);
  if (failure) co_return went_away(failure);
  co_return text;
}

Task<> Handshake::connect_by_http() {
  const std::string to = peer_name(target_);
  std::string request = fmt::format("CONNECT {} HTTP/1.1\r\nHost: {}\r\n", to, to);
  if (!proxy_.user.empty() || !proxy_.password.empty())
    request += "Proxy-Authorization: " + basic_credentials(proxy_.user, proxy_.password) + "\r\n";
  CO_CHECK(co_await write(request + "\r\n"));

  std::string head;
  const auto [failure, end] = co_await asio::async_read_until(socket_, asio::dynamic_buffer(head, longest_head),
                                                              "\r\n\r\n", asio::as_tuple(asio::use_awaitable));
  unwind_if_cancelled(failure);
  if (failure == asio::error::not_found) co_return not_a_proxy("HTTP proxy");
  if (failure) co_return went_away(failure);
  ResponseParser parser({longest_head, std::nullopt});
  if (!parser.put(std::string_view(head).substr(0, end)) || !parser.head_done()) co_return not_a_proxy("HTTP proxy");
  const int status = parser.head().status;
  if (status == 407)
    co_return cannot(Errc::unavailable,
                     proxy_.user.empty()
                         ? "it requires a user and a password; put them into its address, before the host"
                         : "it does not accept the user and the password in its address");
  if (status >= 500 || status == 408 || status == 429)
    co_return cannot(Errc::unreachable, fmt::format("it answered with HTTP status {}", status));
  if (status / 100 != 2)
    co_return cannot(
        Errc::unavailable,
        fmt::format("it answered with HTTP status {}; ask its operator whether it allows this connection", status));
  // The client sends first, with TLS and with HTTP. So bytes after the proxy's response head do not come from the
  // server, and the peer is no HTTP proxy.
  if (head.size() > end) co_return not_a_proxy("HTTP proxy");
  co_return Result<>();
}

// Logs in with user and password (RFC 1929).
Task<> Handshake::log_in_to_socks() {
  std::string request = "\x01";
  for (const std::string* part : {&proxy_.user, &proxy_.password}) {
    request += static_cast<char>(part->size());
    request += *part;
  }
  CO_CHECK(co_await write(std::move(request)));
  CO_TRY(const std::string answer, co_await read(2));
  if (answer[1] != 0)
    co_return cannot(Errc::unavailable, "it does not accept the user and the password in its address");
  co_return Result<>();
}

// Describes a reply code of SOCKS5 (RFC 1928, 6).
std::string in_words(unsigned char code) {
  switch (code) {
    case 0x01: return "it reports a general failure; see its log";
    case 0x02: return "its rules do not allow this; ask its operator";
    case 0x03: return "network unreachable";
    case 0x04: return "host unreachable";
    case 0x05: return "connection refused";
    case 0x06: return "no answer in time";
    default: return fmt::format("it answered with code {}", code);
  }
}

// Performs the SOCKS5 handshake (RFC 1928).
Task<> Handshake::connect_by_socks() {
  using namespace std::string_literals;
  constexpr unsigned char none = 0x00, by_password = 0x02, refused_by_rules = 0x02;
  CO_CHECK(co_await write(proxy_.user.empty() ? "\x05\x01\x00"s : "\x05\x02\x00\x02"s));
  CO_TRY(const std::string method, co_await read(2));
  if (method[0] != 5) co_return not_a_proxy("SOCKS5 proxy");
  const auto chosen = static_cast<unsigned char>(method[1]);
  if (chosen == by_password && !proxy_.user.empty()) {
    CO_CHECK(co_await log_in_to_socks());
  } else if (chosen != none) {
    co_return cannot(Errc::unavailable,
                     proxy_.user.empty()
                         ? "it requires credentials; put USER:PASSWORD@ into its address, before the host"
                         : "it does not accept a user with a password, the only credentials that Haulout can send");
  }

  std::string request = "\x05\x01\x00"s;
  Ec not_literal;
  const auto address = asio::ip::make_address(target_.host, not_literal);
  if (not_literal) {
    if (target_.host.size() > 255)
      co_return cannot(Errc::invalid, "the host name is longer than the 255 bytes that SOCKS5 allows");
    request += '\x03';
    request += static_cast<char>(target_.host.size());
    request += target_.host;
  } else if (address.is_v4()) {
    request += '\x01';
    for (const unsigned char byte : address.to_v4().to_bytes()) request += static_cast<char>(byte);
  } else {
    request += '\x04';
    for (const unsigned char byte : address.to_v6().to_bytes()) request += static_cast<char>(byte);
  }
  request += static_cast<char>(target_.port >> 8);
  request += static_cast<char>(target_.port & 0xff);
  CO_CHECK(co_await write(std::move(request)));

  // The answer is: version, code, reserved byte, address type, address, port. The address and the port are not needed.
  CO_TRY(const std::string answer, co_await read(4));
  if (answer[0] != 5) co_return not_a_proxy("SOCKS5 proxy");
  const auto code = static_cast<unsigned char>(answer[1]);
  if (code != 0)
    co_return cannot(code == refused_by_rules || code > 0x06 ? Errc::unavailable : Errc::unreachable, in_words(code));
  std::size_t bound = 4;
  if (answer[3] == 4) bound = 16;
  if (answer[3] == 3) {
    CO_TRY(const std::string length, co_await read(1));
    bound = static_cast<unsigned char>(length[0]);
  }
  CO_CHECK(co_await read(bound + 2));
  co_return Result<>();
}

using Ec = boost::system::error_code;
using tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;

Error no_connection(const std::string& peer, const std::string& cause) {
  return Error(Errc::unreachable, fmt::format("no connection to {}: {}", peer, cause));
}

std::string in_words(const Ec& failure) {
  if (failure == asio::error::connection_refused)
    return "connection refused (nothing listens there, or a firewall rejects it)";
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

std::vector<Address> order_of_trial(std::vector<Address> addresses, const std::optional<Address>& preferred) {
  const auto first = std::find(addresses.begin(), addresses.end(), preferred);
  if (first != addresses.end()) std::rotate(addresses.begin(), first, first + 1);
  std::vector<Address> others;
  std::vector<Address> order;
  for (const Address& one : addresses) (one.is_v6() == addresses.front().is_v6() ? order : others).push_back(one);
  for (std::size_t i = 0; i < others.size(); ++i)
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(std::min(2 * i + 1, order.size())), others[i]);
  return order;
}

std::string in_words(const std::vector<Trial>& trials, std::string_view host) {
  constexpr std::size_t most = 4;  // number of attempts that are shown; enough to show the cause
  std::string words;
  for (std::size_t i = 0; i < std::min(trials.size(), most); ++i) {
    const std::string address = trials[i].address.to_string();
    if (i > 0) words += "; ";
    if (address != host) words += address + ": ";
    words += trials[i].failure.value_or("no reaction yet");
  }
  if (trials.size() > most) words += fmt::format("; and {} more", trials.size() - most);
  return words;
}

Task<Address> connect_to_first(Clock& clock, RaceLimits limits, std::string host, std::vector<Address> addresses,
                               ConnectOne connect_one, tcp::socket& socket, std::vector<Trial>* trials) {
  Race race(co_await asio::this_coro::executor, clock, limits, connect_one, socket, *trials);
  co_await with_task_group([&](TaskGroup& group) { return race.run(group, addresses); });
  if (race.winner()) co_return *race.winner();
  co_return Error(Errc::unreachable, in_words(*trials, host));
}

std::string name_of(const Proxy& proxy) {
  const std::string at = peer_name({Endpoint::Kind::tcp, proxy.host, proxy.port});
  return proxy.origin.empty() ? "the proxy " + at : fmt::format("the proxy {} ({})", at, proxy.origin);
}

Task<> open_tunnel(tcp::socket& socket, const Proxy& proxy, const Endpoint& target) {
  Handshake handshake(socket, proxy, target);
  co_return co_await (proxy.kind == Proxy::Kind::http ? handshake.connect_by_http() : handshake.connect_by_socks());
}

std::string in_words(const Progress& progress) {
  switch (progress.phase) {
    case Phase::resolve:
      return progress.proxy.empty() ? "its name was still being looked up"
                                    : fmt::format("the name of {} was still being looked up", progress.proxy);
    case Phase::connect:
      if (progress.trials.empty()) return "it was not yet connected";
      return fmt::format("it was not yet connected ({}{}{})", progress.proxy, progress.proxy.empty() ? "" : ": ",
                         in_words(progress.trials, progress.host));
    case Phase::tunnel: return "the proxy had not yet connected to it";
    case Phase::handshake: return "it was connected, but the TLS handshake was not complete";
    case Phase::send: return "the request was not yet sent completely";
    case Phase::answer: return "the request was sent, but no complete answer came";
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
