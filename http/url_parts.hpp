// Returns host and port of a URL that Boost.URL has parsed. Pure.
#pragma once

#include <boost/url/url_view.hpp>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

namespace haulout::http {

// Returns the host of the URL. An IPv6 address has no brackets.
inline std::string host_of(const boost::urls::url_view& url) {
  return url.host_type() == boost::urls::host_type::name ? url.host() : url.host_address();
}

// Returns the port of the URL, or `otherwise` if it has none. Returns nullopt if the port is not a number from 1 to
// 65535.
inline std::optional<std::uint16_t> port_of(const boost::urls::url_view& url, std::uint16_t otherwise) {
  // Boost.URL parses "https://host:name" as an empty port and a path.
  if (const auto path = url.encoded_path(); !path.empty() && path.front() != '/') return std::nullopt;
  if (!url.has_port() || url.port().empty()) return otherwise;
  // port_number() of Boost 1.81 accepts some numbers that are too large, modulo 65536.
  const auto digits = url.port();
  std::uint16_t port = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (problem != std::errc() || port == 0) return std::nullopt;
  return port;
}

}  // namespace haulout::http
