#include "agent/dbus/bus_address.hpp"

#include <fmt/format.h>

#include <charconv>

namespace haulout::agent {
namespace {

// "Server addresses" in the D-Bus specification: these bytes are written unescaped, all others as %XX.
bool stands_for_itself(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         std::string_view("-_/.\\*").find(c) != std::string_view::npos;
}

std::string unix_address(std::string_view path) {
  std::string out = "unix:path=";
  for (const char c : path) {
    if (stands_for_itself(c))
      out += c;
    else
      out += fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

std::optional<std::string> unescaped(std::string_view value) {
  std::string out;
  for (std::size_t at = 0; at < value.size(); ++at) {
    if (value[at] != '%') {
      out += value[at];
      continue;
    }
    unsigned byte = 0;
    const char* const first = value.data() + at + 1;
    if (at + 2 >= value.size() || std::from_chars(first, first + 2, byte, 16).ptr != first + 2) return std::nullopt;
    out += static_cast<char>(byte);
    at += 2;
  }
  return out;
}

}  // namespace

std::vector<std::string> system_bus_addresses(std::string_view host_root, const char* environment) {
  std::vector<std::string> out;
  std::string_view rest = environment == nullptr ? "" : environment;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    if (end > 0) out.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!out.empty()) return out;
  while (host_root.ends_with('/')) host_root.remove_suffix(1);
  for (const char* const path : {"/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket"})
    out.push_back(unix_address(std::string(host_root) + path));
  return out;
}

std::optional<std::string> socket_path_of(std::string_view address) {
  if (!address.starts_with("unix:")) return std::nullopt;
  address.remove_prefix(5);
  while (!address.empty()) {
    const std::size_t end = std::min(address.find(','), address.size());
    const std::string_view pair = address.substr(0, end);
    if (pair.starts_with("path=")) return unescaped(pair.substr(5));
    address.remove_prefix(std::min(end + 1, address.size()));
  }
  return std::nullopt;
}

}  // namespace haulout::agent
