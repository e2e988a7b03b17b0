// SHA-256, and HMAC with it (RFC 2104). It is in this folder because only this folder uses OpenSSL. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace haulout::http {

std::array<std::uint8_t, 32> sha256(std::string_view message);
std::array<std::uint8_t, 32> hmac_sha256(std::string_view key, std::string_view message);

}  // namespace haulout::http
