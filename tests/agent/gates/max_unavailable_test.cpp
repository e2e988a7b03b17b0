#include "agent/gates/max_unavailable.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

TEST(MaxUnavailableTest, OfAPool) {
  struct Row {
    const char* text;
    std::size_t nodes;
    std::size_t expected;
  };
  const std::vector<Row> rows = {
      {"1", 3, 1},      {"1", 0, 1},
      {"0", 100, 0},    {"5", 3, 5},
      {"007", 10, 7},   {"0%", 100, 0},
      {"1%", 1, 1},     {"1%", 99, 1},
      {"1%", 199, 1},   {"1%", 200, 2},
      {"25%", 3, 1},    {"25%", 4, 1},
      {"25%", 7, 1},    {"25%", 8, 2},
      {"33%", 100, 33}, {"33%", 3, 1},
      {"34%", 3, 1},    {"66%", 3, 1},
      {"67%", 3, 2},    {"99%", 10, 9},
      {"100%", 1, 1},   {"100%", 5000, 5000},
      {"50%", 5, 2},    {"25%", 0, 0},
      {"100%", 0, 0},   {"50%", std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() / 2},
  };
  for (const Row& row : rows) {
    const auto limit = parse_max_unavailable(row.text);
    ASSERT_TRUE(limit.has_value()) << limit.error().message();
    EXPECT_EQ(limit->of(row.nodes), row.expected) << row.text << " of " << row.nodes;
  }
}

TEST(MaxUnavailableTest, RefusesTheRest) {
  for (const char* text : {"",
                           " ",
                           "-1",
                           "-1%",
                           "101%",
                           "1000%",
                           "%",
                           "%5",
                           "5%%",
                           "1.5",
                           "12.5%",
                           "1e3",
                           "one",
                           "+1",
                           "1 ",
                           " 1",
                           "25 %",
                           "0x10",
                           "99999999999999999999",
                           "99999999999999999999%",
                           "1,5",
                           "\xff",
                           "all"}) {
    const auto limit = parse_max_unavailable(text);
    ASSERT_FALSE(limit.has_value()) << text;
    EXPECT_EQ(limit.error().code(), Errc::invalid) << text;
    EXPECT_THAT(limit.error().message(), ::testing::HasSubstr("; write a number of nodes like 1")) << text;
  }
}

TEST(MaxUnavailableTest, IsWrittenAsItWasRead) {
  for (const std::string text : {"0", "1", "17", "0%", "25%", "100%"})
    EXPECT_EQ(to_string(*parse_max_unavailable(text)), text);
}

}  // namespace
}  // namespace haulout::agent
