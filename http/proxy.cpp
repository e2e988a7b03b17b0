#include "http/proxy.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <boost/url/parse.hpp>
#include <cctype>

#include "http/url_parts.hpp"

namespace haulout::http {
namespace {

// Limit for the user and the password of SOCKS5, in bytes: RFC 1929 stores each length in one octet.
constexpr std::size_t longest_of_socks = 255;

Error no_proxy_url(std::string_view why) {
  return Error(Errc::invalid, fmt::format("it is not the address of a proxy: {}; expected http://HOST:PORT or "
                                          "socks5://HOST:PORT, with USER:PASSWORD@ before the host if it needs them",
                                          why));
}

}  // namespace

Result<Proxy> parse_proxy(std::string_view url) {
  // As in Go, an address without a scheme means an HTTP proxy.
  const std::string full = (url.find("://") == std::string_view::npos ? "http://" : "") + std::string(url);
  const auto parsed = boost::urls::parse_uri(boost::core::string_view(full.data(), full.size()));
  if (!parsed) return no_proxy_url("it does not look like a URL");
  std::string scheme(parsed->scheme().data(), parsed->scheme().size());
  std::transform(scheme.begin(), scheme.end(), scheme.begin(), [](unsigned char c) { return std::tolower(c); });
  Proxy proxy;
  if (scheme == "http") {
    proxy.port = 80;
  } else if (scheme == "socks5" || scheme == "socks5h") {
    proxy.kind = Proxy::Kind::socks5;
    proxy.port = 1080;
  } else {
    return no_proxy_url(fmt::format("a proxy of the kind {}:// is not supported", scheme));
  }
  if (parsed->host().empty()) return no_proxy_url("it names no host");
  proxy.host = host_of(*parsed);
  const auto port = port_of(*parsed, proxy.port);
  if (!port) return no_proxy_url("the port must be a number from 1 to 65535");
  proxy.port = *port;
  proxy.user = parsed->user();
  proxy.password = parsed->password();
  const bool socks = proxy.kind == Proxy::Kind::socks5;
  if (socks && std::max(proxy.user.size(), proxy.password.size()) > longest_of_socks)
    return no_proxy_url("user and password of SOCKS5 have at most 255 bytes");
  if (socks && proxy.user.empty() != proxy.password.empty())
    return no_proxy_url("SOCKS5 needs both a user and a password, or neither");
  return proxy;
}

}  // namespace haulout::http
