#include "http/hmac.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace haulout::http {
namespace {

std::string hexadecimal(std::string_view key, std::string_view message) {
  std::string out;
  for (const auto byte : hmac_sha256(key, message)) out += fmt::format("{:02x}", byte);
  return out;
}

// RFC 4231, 4.2 and 4.3.
TEST(Hmac, IsThatOfTheStandard) {
  EXPECT_EQ(hexadecimal(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hexadecimal("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

}  // namespace
}  // namespace haulout::http
