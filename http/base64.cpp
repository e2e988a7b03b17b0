#include "http/base64.hpp"

#include <cstdint>

namespace haulout::http {
namespace {
constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view group = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < group.size() ? static_cast<unsigned char>(group[k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= group.size() ? alphabet[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  std::size_t filled = 0;   // digits read of the current group of four
  std::size_t padding = 0;  // number of '=' read
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      ++padding;
      if (filled + padding < 3 || filled == 0 || filled + padding > 4) return std::nullopt;
      continue;
    }
    const std::size_t digit = alphabet.find(c);
    if (digit == std::string_view::npos || padding > 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if (++filled < 4) continue;
    for (const int shift : {16, 8, 0}) out += static_cast<char>(bits >> shift & 255);
    bits = 0;
    filled = 0;
  }
  if (filled == 0 && padding == 0) return out;
  if (filled < 2 || filled + padding != 4) return std::nullopt;
  bits <<= 6 * (4 - filled);
  out += static_cast<char>(bits >> 16 & 255);
  if (filled == 3) out += static_cast<char>(bits >> 8 & 255);
  return out;
}

std::string basic_credentials(std::string_view user, std::string_view password) {
  return "Basic " + base64_encode(std::string(user).append(":").append(password));
}

}  // namespace haulout::http
