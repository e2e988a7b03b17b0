#include "http/base64.hpp"

#include <gtest/gtest.h>

namespace haulout::http {
namespace {

TEST(Base64, TheVectorsOfRfc4648BothWays) {
  for (const auto& [plain, coded] : std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                                                     {"f", "Zg=="},
                                                                                     {"fo", "Zm8="},
                                                                                     {"foo", "Zm9v"},
                                                                                     {"foob", "Zm9vYg=="},
                                                                                     {"fooba", "Zm9vYmE="},
                                                                                     {"foobar", "Zm9vYmFy"},
                                                                                     {"\xff\xfe\xfd", "//79"}}) {
    EXPECT_EQ(base64_encode(plain), coded);
    EXPECT_EQ(base64_decode(coded), plain);
  }
}

TEST(Base64, LineBreaksAreSkipped) {
  EXPECT_EQ(base64_decode("Zm9v\r\nYmFy\n"), "foobar");
}

TEST(Base64, GarbageIsNothing) {
  for (const auto* text :
       {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Z===", "Zm9v=", "Zg==Zg==", "Zm 9v", "Zm-_", "%%%%"})
    EXPECT_EQ(base64_decode(text), std::nullopt) << text;
}

}  // namespace
}  // namespace haulout::http
