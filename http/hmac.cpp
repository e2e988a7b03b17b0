#include "http/hmac.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdlib>

namespace haulout::http {

std::array<std::uint8_t, 32> sha256(std::string_view message) {
  std::array<std::uint8_t, 32> digest{};
  // Fails only if OpenSSL has no SHA-256 or no memory.
  if (EVP_Digest(message.data(), message.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) std::abort();
  return digest;
}

std::array<std::uint8_t, 32> hmac_sha256(std::string_view key, std::string_view message) {
  std::array<std::uint8_t, 32> digest{};
  const auto* bytes = reinterpret_cast<const unsigned char*>(message.data());
  // Fails only if OpenSSL has no SHA-256 or no memory.
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, message.size(), digest.data(), nullptr) ==
      nullptr)
    std::abort();
  return digest;
}

}  // namespace haulout::http
