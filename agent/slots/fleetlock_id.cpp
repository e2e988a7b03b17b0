#include "agent/slots/fleetlock_id.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/plain_text.hpp"
#include "http/hmac.hpp"

namespace haulout::agent {
namespace {

constexpr std::size_t id_bytes = 16;
constexpr std::size_t file_limit = 100;
constexpr std::string_view file = "/etc/machine-id";
// Zincati's application id, from coreos/zincati, src/identity/mod.rs.
constexpr std::string_view application = "de35106b6ec24688b63afddaa156679b";

// Decodes a machine id. Returns an empty string if it is not one.
std::string bytes_of(std::string_view hexadecimal) {
  if (hexadecimal.size() != 2 * id_bytes) return {};
  std::string bytes;
  for (std::size_t i = 0; i < hexadecimal.size(); i += 2) {
    unsigned value = 0;
    const char* end = hexadecimal.data() + i + 2;
    const auto [stop, failure] = std::from_chars(hexadecimal.data() + i, end, value, 16);
    if (failure != std::errc() || stop != end) return {};
    bytes += static_cast<char>(value);
  }
  // machine-id(5): an id of zeros is invalid.
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; }) ? std::string() : bytes;
}

}  // namespace

Result<std::string> fleetlock_id(std::string_view machine_id) {
  const std::string machine = bytes_of(machine_id);
  if (machine.empty())
    return Error(Errc::invalid,
                 fmt::format("\"{}\" is not a machine id, which has 32 hexadecimal digits", one_line(machine_id, 40)));
  auto digest = http::hmac_sha256(machine, bytes_of(application));
  // Sets version and variant bits of a random UUID (RFC 4122 4.4), as systemd does.
  digest[6] = static_cast<std::uint8_t>((digest[6] & 0x0f) | 0x40);
  digest[8] = static_cast<std::uint8_t>((digest[8] & 0x3f) | 0x80);
  std::string id;
  for (std::size_t i = 0; i < id_bytes; ++i) id += fmt::format("{:02x}", digest[i]);
  return id;
}

Result<std::string> fleetlock_id(const HostRoot& root, const OwnNode& node) {
  const auto text = root.read(file, file_limit);
  if (!text) return text.error();
  const std::string machine_id = *text ? first_line(**text) : std::string();
  if (machine_id.empty()) return node.uid;
  auto id = fleetlock_id(machine_id);
  if (!id)
    return std::move(id).error().with_context(
        root.display(file) + " (systemd-machine-id-setup creates one; systemd does so at the first boot)");
  return id;
}

}  // namespace haulout::agent
