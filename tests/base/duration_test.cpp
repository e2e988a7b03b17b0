#include "base/duration.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;

struct Row {
  const char* text;
  Duration expected;
};

TEST(DurationTest, ReadsWhatGoReads) {
  const std::vector<Row> rows = {
      {"0", 0s},        {"0s", 0s},
      {"90s", 90s},     {"5m", 5min},
      {"1h30m", 90min}, {"1.5h", 90min},
      {"300ms", 300ms}, {"2h45m30.5s", 9930500ms},
      {".5s", 500ms},   {"1.s", 1s},
      {"+5s", 5s},      {"-5s", -5s},
      {"10us", 10us},   {"10\u00b5s", 10us},
      {"7ns", 7ns},     {"-0", 0s},
      {"1s1s", 2s},     {"2562047h", 2562047h},
  };
  for (const Row& row : rows) {
    const auto parsed = parse_duration(row.text);
    ASSERT_TRUE(parsed.has_value()) << row.text << ": " << parsed.error().message();
    EXPECT_EQ(parsed->count(), row.expected.count()) << row.text;
  }
}

TEST(DurationTest, RefusesWhatGoRefuses) {
  for (const char* text : {"", "5", "5x", "s", "-", "+", ".", ".s", "1h 30m", "5 s", "1e3s", "abc", "2562048h",
                           "9223372036854775808ns", "99999999999999999999s", "1h99999999999h", "5S", "1d"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code(), Errc::invalid) << text;
    EXPECT_THAT(parsed.error().message(), ::testing::HasSubstr("90s")) << "shows how to write it: " << text;
  }
}

TEST(DurationTest, IsShownInTwoUnitsAtMost) {
  const std::vector<std::pair<Duration, std::string>> rows = {
      {850ms, "850ms"},        {42s, "42s"},      {185s, "3m05s"},
      {59min + 59s, "59m59s"}, {127min, "2h07m"}, {71h + 59min, "71h59m"},
      {30 * 24h, "30d00h"},    {77h, "3d05h"},    {-3s, "-3s"}};
  for (const auto& [duration, text] : rows) EXPECT_EQ(format_duration(duration), text);
}

}  // namespace
}  // namespace haulout::agent
