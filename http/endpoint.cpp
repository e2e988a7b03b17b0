#include <fmt/format.h>
#include <boost/url/parse.hpp>

#include "http/client.hpp"
#include "http/url_parts.hpp"

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
  if (parsed->has_userinfo()) return not_an_endpoint(url, "it must not contain user and password");
  if (parsed->has_query() || parsed->has_fragment())
    return not_an_endpoint(url, "it must not have a query or fragment");

  Endpoint endpoint;
  endpoint.kind = https ? Endpoint::Kind::tls : Endpoint::Kind::tcp;
  endpoint.host = host_of(*parsed);
  const auto port = port_of(*parsed, https ? 443 : 80);
  if (!port) return not_an_endpoint(url, "the port must be a number from 1 to 65535");
  endpoint.port = *port;
  if (prefix != nullptr) {
    const auto path = parsed->encoded_path();
    *prefix = std::string(path.data(), path.size());
    while (prefix->ends_with('/')) prefix->pop_back();
  }
  return endpoint;
}

}  // namespace haulout::http
