#include "http/message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace haulout::http {
namespace {

using namespace std::chrono_literals;
using ::testing::Eq;
using ::testing::Optional;

TEST(Headers, FindsTheFirstOfANameInAnyCase) {
  Headers headers;
  headers.add("Content-Type", "application/json");
  headers.add("content-type", "text/plain");
  EXPECT_THAT(headers.find("CONTENT-TYPE"), Optional(Eq("application/json")));
  EXPECT_EQ(headers.find("Content-Typ"), std::nullopt);
  EXPECT_EQ(headers.find("Content-Types"), std::nullopt);
}

TEST(Headers, SetReplacesEveryFieldOfThatName) {
  Headers headers;
  headers.add("A", "1");
  headers.add("B", "2");
  headers.add("a", "3");
  headers.set("A", *headers.find("a"));  // the value points into the header that is replaced
  ASSERT_EQ(headers.fields().size(), 2u);
  EXPECT_THAT(headers.find("a"), Optional(Eq("1")));
  EXPECT_THAT(headers.find("B"), Optional(Eq("2")));
}

struct RetryAfterCase {
  const char* value;
  std::optional<std::chrono::milliseconds> expected;
};

class RetryAfter : public ::testing::TestWithParam<RetryAfterCase> {};

TEST_P(RetryAfter, IsDecoded) {
  // Sun, 06 Nov 1994 08:49:37 GMT
  const auto now = std::chrono::sys_days(std::chrono::year(1994) / 11 / 6) + 8h + 49min + 37s;
  Headers headers;
  headers.add("retry-after", GetParam().value);
  EXPECT_EQ(retry_after(headers, now), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(Values, RetryAfter,
                         ::testing::Values(RetryAfterCase{"1", 1s}, RetryAfterCase{"0", 0s},
                                           RetryAfterCase{"120", 120s},
                                           RetryAfterCase{"99999999999999999999999", std::chrono::days(3650)},
                                           RetryAfterCase{"", std::nullopt}, RetryAfterCase{"-1", std::nullopt},
                                           RetryAfterCase{"1.5", std::nullopt}, RetryAfterCase{"1 s", std::nullopt},
                                           RetryAfterCase{"soon", std::nullopt},
                                           RetryAfterCase{"Sun, 06 Nov 1994 08:50:07 GMT", 30s},
                                           RetryAfterCase{"Mon, 07 Nov 1994 08:49:37 GMT", 24h},
                                           RetryAfterCase{"Sun, 06 Nov 1994 08:49:07 GMT", 0s},  // in the past
                                           RetryAfterCase{"Sunday, 06-Nov-94 08:50:07 GMT", 30s},
                                           RetryAfterCase{"Sun Nov  6 08:50:07 1994", 30s},
                                           RetryAfterCase{"Sun, 06 Nov 1994 08:50:07", std::nullopt},
                                           RetryAfterCase{"Sun, 06 Nov 1994 08:50:07 GMT+1", std::nullopt},
                                           RetryAfterCase{"Sun, 31 Feb 1995 08:50:07 GMT", std::nullopt},
                                           RetryAfterCase{"Sun, 06 Foo 1994 08:50:07 GMT", std::nullopt},
                                           RetryAfterCase{"Sun, 06 Nov 1994 25:50:07 GMT", std::nullopt}));

TEST(RetryAfterHeader, Absent) {
  EXPECT_EQ(retry_after(Headers{}, {}), std::nullopt);
}

}  // namespace
}  // namespace haulout::http
