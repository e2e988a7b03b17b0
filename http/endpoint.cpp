#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>

#include "http/client.hpp"

namespace haulout::http {
namespace {

Error not_an_endpoint(std::string_view url, std::string_view why) {
  return Error(Errc::invalid, fmt::format("\"{}\" is not the address of a server: {}", url, why));
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
  if (!https && !http)
    return not_an_endpoint(url, "it must look like https://host:port, http://host:port or unix:/path");
  if (parsed->host().empty()) return not_an_endpoint(url, "it names no host");
  if (parsed->has_userinfo()) return not_an_endpoint(url, "user and password do not belong into it");
  if (parsed->has_query() || parsed->has_fragment())
    return not_an_endpoint(url, "it must not have a query or fragment");

  Endpoint endpoint;
  endpoint.kind = https ? Endpoint::Kind::tls : Endpoint::Kind::tcp;
  endpoint.host = parsed->host_type() == boost::urls::host_type::name ? parsed->host() : parsed->host_address();
  endpoint.port = https ? 443 : 80;
  if (parsed->has_port() && !parsed->port().empty()) {
    // port_number() of Boost 1.81 takes some numbers that are too large modulo 65536.
    const auto digits = parsed->port();
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), endpoint.port);
    if (problem != std::errc() || endpoint.port == 0)
      return not_an_endpoint(url, "the port must be a number from 1 to 65535");
  }
  const auto path = parsed->encoded_path();
  // "https://host:name" is read as an empty port and a path.
  if (!path.empty() && path.front() != '/') return not_an_endpoint(url, "the port must be a number from 1 to 65535");
  if (prefix != nullptr) {
    *prefix = std::string(path.data(), path.size());
    while (prefix->ends_with('/')) prefix->pop_back();
  }
  return endpoint;
}

}  // namespace haulout::http
