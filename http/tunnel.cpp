#include "http/tunnel.hpp"

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "http/base64.hpp"
#include "http/cancelled.hpp"
#include "http/dial.hpp"
#include "http/parser.hpp"

namespace haulout::http {
namespace asio = boost::asio;
namespace {

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
    co_return cannot(Errc::unreachable, fmt::format("it answered {}", status));
  if (status / 100 != 2)
    co_return cannot(Errc::unavailable,
                     fmt::format("it answered {}; ask its operator whether this is allowed", status));
  // With TLS and HTTP the client sends first, so bytes behind the head cannot come from the server.
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
    case 0x01: return "general failure";
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
    co_return cannot(Errc::unavailable, "it requires another kind of credentials than those in its address");
  }

  std::string request = "\x05\x01\x00"s;
  Ec not_literal;
  const auto address = asio::ip::make_address(target_.host, not_literal);
  if (not_literal) {
    if (target_.host.size() > 255) co_return cannot(Errc::invalid, "the name is too long");
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

}  // namespace

std::string name_of(const Proxy& proxy) {
  const std::string at = peer_name({Endpoint::Kind::tcp, proxy.host, proxy.port});
  return proxy.origin.empty() ? "the proxy " + at : fmt::format("the proxy {} ({})", at, proxy.origin);
}

Task<> open_tunnel(tcp::socket& socket, const Proxy& proxy, const Endpoint& target) {
  Handshake handshake(socket, proxy, target);
  co_return co_await (proxy.kind == Proxy::Kind::http ? handshake.connect_by_http() : handshake.connect_by_socks());
}

}  // namespace haulout::http
