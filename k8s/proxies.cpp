#include "k8s/proxies.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

namespace haulout::k8s {
namespace ip = boost::asio::ip;

namespace {

using Ec = boost::system::error_code;

// Makes a name or an entry comparable: lower case, without blanks.
std::string folded(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' && c != '\t') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

bool is_in_network(const ip::address& address, const std::string& network) {
  Ec failure;
  if (address.is_v4()) {
    const auto v4 = ip::make_network_v4(network, failure);
    return !failure && ip::make_network_v4(address.to_v4(), v4.prefix_length()).canonical() == v4.canonical();
  }
  const auto v6 = ip::make_network_v6(network, failure);
  return !failure && ip::make_network_v6(address.to_v6(), v6.prefix_length()).canonical() == v6.canonical();
}

// Accepts "name", "name:port", "[address]:port" and "network/bits". Returns an empty string for an entry with another
// port.
std::string without_port(const std::string& entry, std::uint16_t port) {
  const std::size_t colon = entry.rfind(':');
  const bool bracketed = entry.starts_with('[');
  const bool has_port = colon != std::string::npos && (bracketed ? entry[colon - 1] == ']' : entry.find(':') == colon);
  std::string host = has_port ? entry.substr(0, colon) : entry;
  if (has_port && entry.substr(colon + 1) != std::to_string(port)) return {};
  if (bracketed && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

bool excepts(const std::string& entry, const std::string& host, const std::optional<ip::address>& address,
             std::uint16_t port) {
  if (entry == "*") return true;
  const std::string wanted = without_port(entry, port);
  if (wanted.empty()) return false;
  if (address) {
    Ec failure;
    const ip::address other = ip::make_address(wanted, failure);
    return failure ? is_in_network(*address, wanted) : other == *address;
  }
  const std::string suffix = wanted.starts_with("*.") ? wanted.substr(1) : wanted;
  if (suffix.starts_with('.')) return host.ends_with(suffix);
  return host == suffix || host.ends_with("." + suffix);
}

bool excepted(const Environment& environment, const http::Endpoint& endpoint) {
  const std::string host = folded(endpoint.host);
  Ec no_address;
  const ip::address parsed = ip::make_address(host, no_address);
  const std::optional<ip::address> address = no_address ? std::nullopt : std::optional(parsed);
  if (host == "localhost" || (address && address->is_loopback())) return true;
  std::string list = environment.get("NO_PROXY");
  if (list.empty()) list = environment.get("no_proxy");
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t to = std::min(list.find(',', from), list.size());
    if (excepts(folded(std::string_view(list).substr(from, to - from)), host, address, endpoint.port)) return true;
    from = to + 1;
  }
  return false;
}

}  // namespace

Result<> choose_proxy(Connection& connection, const Environment& environment) {
  if (connection.proxy || connection.endpoint.kind != http::Endpoint::Kind::tls) return {};
  const std::string variable = environment.get("HTTPS_PROXY").empty() ? "https_proxy" : "HTTPS_PROXY";
  const std::string url = environment.get(variable);
  if (url.empty() || excepted(environment, connection.endpoint)) return {};
  auto proxy = http::parse_proxy(url);
  if (!proxy) return Error(Errc::unavailable, variable + ": " + proxy.error().message());
  connection.proxy = *std::move(proxy);
  connection.proxy->origin = variable;
  return {};
}

}  // namespace haulout::k8s
