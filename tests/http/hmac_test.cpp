#include "http/hmac.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace haulout::http {
namespace {

std::string hexadecimal(const std::array<std::uint8_t, 32>& digest) {
  std::string out;
  for (const auto byte : digest) out += fmt::format("{:02x}", byte);
  return out;
}

// Test vector of FIPS 180-2, B.1.
TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(hexadecimal(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// Test vectors of RFC 4231, 4.2 and 4.3.
TEST(Hmac, IsThatOfTheStandard) {
  EXPECT_EQ(hexadecimal(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hexadecimal(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

}  // namespace
}  // namespace haulout::http
