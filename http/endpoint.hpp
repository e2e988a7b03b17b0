// The addresses of servers and of proxies: what an option, a kubeconfig or an environment variable names. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "retry/task.hpp"

namespace haulout::http {

struct Endpoint {
  enum class Kind { tcp, tls, unix_socket } kind = Kind::tls;
  std::string host;  // name or address, IPv6 without brackets; for unix_socket the path
  std::uint16_t port = 443;
  std::string authority() const;  // the value of the Host header
};

// Accepts "https://host:port[/prefix]", "http://…" or "unix:/path". Writes the path prefix without its final slash to
// *prefix, which may be null. Fails with Errc::invalid.
Result<Endpoint> parse_endpoint(std::string_view url, std::string* prefix);

// The address of a proxy: either an HTTP proxy, which opens a tunnel by CONNECT (RFC 9110 9.3.6), or a SOCKS5 proxy
// (RFC 1928, 1929). The proxy resolves the server's name, as with kubectl.
struct Proxy {
  enum class Kind { http, socks5 } kind = Kind::http;
  std::string host;  // name or address, IPv6 without brackets
  std::uint16_t port = 0;
  std::string user, password;  // empty if the proxy needs none
  std::string origin;          // where it is set, for messages: "HTTPS_PROXY", "kubeconfig …, cluster \"c\": proxy-url"
  bool operator==(const Proxy&) const = default;
};

// Accepts "http://[user:password@]host[:port]", "socks5://…", or "host:port" for an HTTP proxy. The default port is 80
// for HTTP and 1080 for SOCKS5. Fails with Errc::invalid. The message never contains the URL, which may have a
// password.
Result<Proxy> parse_proxy(std::string_view url);

}  // namespace haulout::http
