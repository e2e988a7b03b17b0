// The way to a server through a proxy: an HTTP proxy that opens a tunnel when asked to (CONNECT, RFC 9110 9.3.6), or a
// SOCKS5 proxy (RFC 1928, 1929). Either looks up the server's name itself, as kubectl lets it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "retry/task.hpp"

namespace haulout::http {

struct Proxy {
  enum class Kind { http, socks5 } kind = Kind::http;
  std::string host;  // name or address, IPv6 without brackets
  std::uint16_t port = 0;
  std::string user, password;  // empty: it wants none
  std::string origin;  // where it is named, for messages: "HTTPS_PROXY", "kubeconfig …, cluster \"c\": proxy-url"
  bool operator==(const Proxy&) const = default;
};

// "http://[user:password@]host[:port]", "socks5://…", or "host:port", which is an HTTP proxy. Without a port it is 80
// or 1080. Errc::invalid, in words that never repeat the URL: it may hold a password.
Result<Proxy> parse_proxy(std::string_view url);

}  // namespace haulout::http
