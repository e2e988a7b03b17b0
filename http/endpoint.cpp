#include "http/endpoint.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <cctype>
#include <optional>

#include "base/text.hpp"

namespace haulout::http {
namespace {

// Returns the host of the URL. An IPv6 address has no brackets.
std::string host_of(const boost::urls::url_view& url) {
  return url.host_type() == boost::urls::host_type::name ? url.host() : url.host_address();
}

// Returns true if the port of `url` is not a number. For Boost 1.83 such a text is no URL at all; 1.81 takes the port
// for a path. The error must name the port with both.
bool port_is_no_number(std::string_view url) {
  const auto scheme = url.find("://");
  std::string_view rest = scheme == std::string_view::npos ? url : url.substr(scheme + 3);
  rest = rest.substr(0, rest.find_first_of("/?#"));
  if (const auto user = rest.rfind('@'); user != std::string_view::npos) rest.remove_prefix(user + 1);
  const auto colon = rest.rfind(':');
  return colon != std::string_view::npos && !rest.ends_with(']') &&
         rest.substr(colon + 1).find_first_not_of("0123456789") != std::string_view::npos;
}

constexpr const char* wrong_port = "the port must be a number from 1 to 65535";

// Returns the port of the URL, or `otherwise` if it has none. Returns nullopt if the port is not a number from 1 to
// 65535.
std::optional<std::uint16_t> port_of(const boost::urls::url_view& url, std::uint16_t otherwise) {
  // Boost 1.81 parses "https://host:name" as an empty port and a path without a slash, so such a path is a wrong port.
  if (const auto path = url.encoded_path(); !path.empty() && path.front() != '/') return std::nullopt;
  if (!url.has_port() || url.port().empty()) return otherwise;
  // port_number() of Boost 1.81 is not used, because it accepts some numbers that are too large, modulo 65536.
  const auto digits = url.port();
  const auto port = parse_number<std::uint16_t>({digits.data(), digits.size()});
  return port == 0 ? std::nullopt : port;
}

Error not_an_endpoint(std::string_view url, std::string_view why) {
  return Error(Errc::invalid, fmt::format("\"{}\" cannot be used as the address of a server: {}", url, why));
}

// Limit for the user and the password of SOCKS5, in bytes: RFC 1929 stores each length in one octet.
constexpr std::size_t longest_of_socks = 255;

Error no_proxy_url(std::string_view why) {
  return Error(Errc::invalid,
               fmt::format("it cannot be used as a proxy: {}; expected http://HOST:PORT or "
                           "socks5://HOST:PORT, with USER:PASSWORD@ before the host if the proxy needs them",
                           why));
}

}  // namespace

std::string Endpoint::authority() const {
  if (kind == Kind::unix_socket) return "localhost";
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == (kind == Kind::tls ? 443 : 80) ? name : fmt::format("{}:{}", name, port);
}

Result<Endpoint> parse_endpoint(std::string_view url, std::string* prefix) {
  if (prefix != nullptr) prefix->clear();
  if (url.starts_with("unix:")) {
    auto path = url.substr(5);
    if (path.starts_with("//")) path.remove_prefix(2);
    if (!path.starts_with('/')) return not_an_endpoint(url, "a unix socket needs an absolute path (unix:/run/x.sock)");
    return Endpoint{Endpoint::Kind::unix_socket, std::string(path), 0};
  }
  const auto parsed = boost::urls::parse_uri(boost::core::string_view(url.data(), url.size()));
  using boost::urls::scheme;
  const bool https = parsed.has_value() && parsed->scheme_id() == scheme::https;
  const bool http = parsed.has_value() && parsed->scheme_id() == scheme::http;
  if (!parsed && port_is_no_number(url)) return not_an_endpoint(url, wrong_port);
  if (!https && !http)
    return not_an_endpoint(url, "it must look like https://host:port, http://host:port or unix:/path");
  if (parsed->host().empty()) return not_an_endpoint(url, "it names no host");
  if (parsed->has_userinfo()) return not_an_endpoint(url, "it must not contain user and password");
  if (parsed->has_query() || parsed->has_fragment())
    return not_an_endpoint(url, "it must not have a query (?) or a fragment (#)");

  Endpoint endpoint;
  endpoint.kind = https ? Endpoint::Kind::tls : Endpoint::Kind::tcp;
  endpoint.host = host_of(*parsed);
  const auto port = port_of(*parsed, https ? 443 : 80);
  if (!port) return not_an_endpoint(url, wrong_port);
  endpoint.port = *port;
  if (prefix != nullptr) {
    const auto path = parsed->encoded_path();
    *prefix = std::string(path.data(), path.size());
    while (prefix->ends_with('/')) prefix->pop_back();
  }
  return endpoint;
}

Result<Proxy> parse_proxy(std::string_view url) {
  // As in Go, an address without a scheme means an HTTP proxy.
  const std::string full = (url.find("://") == std::string_view::npos ? "http://" : "") + std::string(url);
  const auto parsed = boost::urls::parse_uri(boost::core::string_view(full.data(), full.size()));
  if (!parsed) return no_proxy_url(port_is_no_number(full) ? wrong_port : "it does not look like a URL");
  std::string scheme(parsed->scheme().data(), parsed->scheme().size());
  std::transform(scheme.begin(), scheme.end(), scheme.begin(), [](unsigned char c) { return std::tolower(c); });
  Proxy proxy;
  if (scheme == "http") {
    proxy.port = 80;
  } else if (scheme == "socks5" || scheme == "socks5h") {
    proxy.kind = Proxy::Kind::socks5;
    proxy.port = 1080;
  } else {
    return no_proxy_url(fmt::format("{}:// proxies are not supported", scheme));
  }
  if (parsed->host().empty()) return no_proxy_url("it names no host");
  proxy.host = host_of(*parsed);
  const auto port = port_of(*parsed, proxy.port);
  if (!port) return no_proxy_url(wrong_port);
  proxy.port = *port;
  proxy.user = parsed->user();
  proxy.password = parsed->password();
  const bool socks = proxy.kind == Proxy::Kind::socks5;
  if (socks && std::max(proxy.user.size(), proxy.password.size()) > longest_of_socks)
    return Error(Errc::invalid, "its user or its password is too long: SOCKS5 allows 255 bytes for each");
  if (socks && proxy.user.empty() != proxy.password.empty())
    return Error(Errc::invalid, "SOCKS5 needs both a user and a password, or neither");
  return proxy;
}

}  // namespace haulout::http
