// Tests which windows are refused. The error says where the mistake is and what to write instead.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>

#include "tests/agent/gates/gates_support.hpp"

namespace haulout::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Row {
  std::string text;
  int character;
  std::string says;
};

template <class Parsed>
void check_refused(const Parsed& parsed, const Row& row) {
  ASSERT_FALSE(parsed.has_value()) << row.text;
  EXPECT_EQ(parsed.error().code(), Errc::invalid) << row.text;
  const std::string message = parsed.error().message();
  EXPECT_THAT(message, StartsWith(fmt::format("character {}: ", row.character))) << row.text;
  EXPECT_THAT(message, HasSubstr("; ")) << "a way out: " << row.text;
  EXPECT_THAT(message, HasSubstr(row.says)) << row.text;
}

TEST(WindowErrorsTest, SayWhereAndWhat) {
  const std::vector<Row> rows = {
      {"", 1, "empty"},
      {"   ", 4, "empty"},
      {"Sat,Snu 01:00+6h", 5, "\"Snu\""},
      {"Sat, 01:00+6h", 6, "missing"},
      {"Sat", 4, "a time is missing"},
      {"Mon- 22:00", 5, "missing"},
      {"Mon-Fr 22:00", 5, "\"Fr\""},
      {"Mon–Fri 22:00", 4, "time"},
      {"tomorrow 22:00", 1, "\"tomorrow\""},
      {"22", 3, "colon"},
      {"22:0", 1, "time of day"},
      {"22:000", 1, "time of day"},
      {"022:00", 1, "time of day"},
      {"24:00", 1, "24:00"},
      {"22:60+1h", 1, "22:60"},
      {"25:00", 1, "25:00"},
      {"99999999999999999999:00", 1, "time of day"},
      {"22:00:00+1h", 1, "time of day"},
      {"10pm", 1, "\"10pm\""},
      {"10:00pm", 1, "time of day"},
      {"22:00Z", 1, "time of day"},
      {"-22:00", 1, "missing"},
      {"22:00+", 7, "duration"},
      {"22:00+4", 7, "unit"},
      {"22:00+4d", 7, "\"d\""},
      {"22:00+4 h", 7, "unit"},
      {"22:00+02:00", 7, "02:00"},
      {"22:00+0h", 7, "0h"},
      {"22:00+-4h", 7, "-4h"},
      {"22:00++4h", 7, "+4h"},
      {"22:00+59s", 7, "59s"},
      {"22:00+745h", 7, "744h"},
      {"22:00+99999999999h", 7, "99999999999h"},
      {"22:00-", 7, "missing"},
      {"22:00-22:00", 7, "ends when it starts"},
      {"22:00-24:01", 7, "24:01"},
      {"22:00-4", 8, "colon"},
      {"22:00-4h", 8, "colon"},
      {"22:00-04:00+1h", 12, "+1h"},
      {"2nd 03:00", 5, "missing"},
      {"2nd", 4, "missing"},
      {"2th Tue 03:00", 1, "\"2th\""},
      {"6th Tue 03:00", 1, "\"6th\""},
      {"0th Tue 03:00", 1, "\"0th\""},
      {"1st,, Tue 03:00", 5, "not an ordinal"},
      {"2nd-3rd Tue 03:00", 4, "missing"},
      {"last 03:00", 6, "missing"},
      {"last last Sun 03:00", 6, "\"last\""},
      {"22:00 04:00", 7, "04:00"},
      {"22:00+4h Europe/Berlin 23:00+4h", 24, "nothing may follow"},
      {"22:00+4h;23:00+4h", 7, "unknown unit \"h;\""},
      {"2026-12-20..2027-01-03", 23, "a time is missing"},
      {"2026-12-20 Europe/Berlin", 12, "a time is missing"},
      {"2026-12-32 22:00+4h", 1, "2026-12-32"},
      {"2026-12-24..2026-12-20 22:00+4h", 1, "before"},
      {"2026-12-24,2026-12-25 22:00+4h", 1, "not a date"},
      {"2026-12-24 Sat 22:00+4h", 12, "a time is missing"},
      {"2026-12-24T22:00+4h", 1, "not a date"},
      {"@daily", 1, "missing"},
      {"* * * * *", 1, "missing"},
      {"cron", 5, "bracket"},
      {"cron 0 2 * * *", 5, "bracket"},
      {"cron(", 6, "closed"},
      {"cron(0 2 * * *", 6, "closed"},
      {"cron()", 6, "five fields, but there are 0"},
      {"cron(0 2 * *)+3h", 6, "here are 4"},
      {"cron(0 0 2 * * *)+3h", 6, "here are 6"},
      {"cron(60 2 * * *)", 6, "60 is not a valid minute"},
      {"cron(0 24 * * *)", 8, "24 is not a valid hour"},
      {"cron(0 2 0 * *)", 10, "0 is not a valid day of month"},
      {"cron(0 2 32 * *)", 10, "32 is not a valid day of month"},
      {"cron(0 2 * 13 *)", 12, "13 is not a valid month"},
      {"cron(0 2 * 0 *)", 12, "0 is not a valid month"},
      {"cron(0 2 * * 8)", 14, "8 is not a valid day of week"},
      {"cron(0 2 * * Mo)", 14, "\"Mo\""},
      {"cron(0 2 * Foo *)", 12, "\"Foo\""},
      {"cron(a 2 * * *)", 6, "\"a\""},
      {"cron(1,,2 2 * * *)", 8, "missing"},
      {"cron(1, 2 * * *)", 8, "missing"},
      {"cron(1- 2 * * *)", 8, "missing"},
      {"cron(-1 2 * * *)", 6, "missing"},
      {"cron(5-3 2 * * *)", 6, "reversed"},
      {"cron(0 2 * * Sat-Tue)", 14, "reversed"},
      {"cron(*/0 2 * * *)", 8, "from 1 on"},
      {"cron(*/ 2 * * *)", 8, "from 1 on"},
      {"cron(*/x 2 * * *)", 8, "from 1 on"},
      {"cron(5/15 2 * * *)", 8, "range"},
      {"cron(0-30/15/2 2 * * *)", 11, "from 1 on"},
      {"cron(0 2 L * *)", 10, "\"L\""},
      {"cron(0 2 ? * 1)", 10, "\"?\""},
      {"cron(0 2 * * 5#2)", 14, "\"5#2\""},
      {"cron(99999999999 2 * * *)", 6, "\"99999999999\""},
      {"cron(0 2 31 2 *)", 10, "such a day"},
      {"cron(0 2 30,31 feb *)", 10, "such a day"},
      {"cron(0 2 31 4,6,9,11 *)", 10, "such a day"},
      {"cron(0 2 * * *)-02:00", 17, "ends when it starts"},
      {"cron(0 2,4 * * *)-04:00", 19, "ends when it starts"},
      {"cron(@daily)", 6, "here are 1"},
  };
  for (const Row& row : rows) check_refused(parse_window(row.text), row);
}

TEST(WindowErrorsTest, BlackoutsToo) {
  const std::vector<Row> rows = {
      {"", 1, "empty"},
      {"Snu 01:00", 1, "\"Snu\""},
      {"2026-12-20.2027-01-03", 12, "two dots"},
      {"2026-12-20...2027-01-03", 13, "not a date"},
      {"2026-12-20..", 13, "not a date"},
      {"2026-12-20-2027-01-03", 1, "not a date"},
      {"2026-12-20..2027-1-3", 13, "not a date"},
      {"2026-12", 1, "not a date"},
      {"2026-13-01", 1, "2026-13-01"},
      {"2026-02-29", 1, "2026-02-29"},
      {"2026-12-20..2026-12-32", 13, "2026-12-32"},
      {"0000-01-01", 1, "0000-01-01"},
      {"2027-01-03..2026-12-20", 1, "before"},
      {"2026-12-20T00:00:00Z", 1, "not a date"},
      {"2026-12-20 Europe/Berln", 12, "Europe/Berlin"},
      {"2026-12-20 UTC 2026-12-21", 16, "nothing may follow"},
  };
  for (const Row& row : rows) check_refused(parse_blackout(row.text), row);
}

TEST(WindowErrorsTest, AnUnknownZoneNamesTheNearest) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"Europe/Berln", "did you mean Europe/Berlin?"},
      {"europe/berlin", "did you mean Europe/Berlin?"},
      {"Berlin", "did you mean Europe/Berlin?"},
      {"new_york", "did you mean America/New_York?"},
      {"America/NewYork", "did you mean America/New_York?"},
      {"utc", "did you mean UTC?"},
      {"Middle-earth/Bag_End_Under_The_Hill", "Europe/Berlin"},
  };
  for (const auto& [zone, says] : rows) check_refused(parse_window("22:00+4h " + zone), {zone, 10, says});
  for (const char* zone :
       {"../../etc/passwd", "/etc/passwd", "Europe", "Europe/", ".", "zone.tab", "tzdata.zi", "\x01\x02"})
    EXPECT_FALSE(parse_window(std::string("22:00+4h ") + zone).has_value()) << zone;
}

TEST(WindowErrorsTest, ATextTooLongIsNotReadAtAll) {
  check_refused(parse_window("22:00+4h" + std::string(100'000, ' ')), {"long", 501, "must be shorter"});
}

TEST(WindowErrorsTest, ControlCharactersAreNotEchoed) {
  const auto parsed = parse_window("Snu\x1b[31m\n 22:00");
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().message().find('\x1b'), std::string::npos);
  EXPECT_EQ(parsed.error().message().find('\n'), std::string::npos);
}

// Any text gives either a valid window or an error message.
TEST(WindowErrorsTest, NoTextDoesHarm) {
  const std::vector<std::string> pieces = {"22:00",
                                           "Sat",
                                           "Mon-Fri",
                                           ",",
                                           "-",
                                           "+",
                                           "4h",
                                           "2nd",
                                           "last",
                                           " ",
                                           ":",
                                           "00",
                                           "Europe/Berlin",
                                           "cron(",
                                           "*",
                                           "*/5",
                                           ")",
                                           "0 2 * * 1-5",
                                           "..",
                                           "2026-12-20",
                                           "29",
                                           "7",
                                           "/",
                                           "\xff",
                                           std::string(1, '\0'),
                                           "ä",
                                           "(",
                                           "UTC",
                                           "1m",
                                           "24:00"};
  constexpr std::uint32_t seed = 4;
  std::mt19937 random(seed);
  int valid = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string text = i % 4 < 2 ? "" : "cron(0 2 * * 1-5)";
    for (std::size_t left = 1 + random() % 6; left > 0; --left) text += pieces[random() % pieces.size()];
    if (i % 2 == 0) {
      const auto parsed = parse_blackout(text);
      if (!parsed) EXPECT_THAT(parsed.error().message(), HasSubstr("; ")) << text;
      if (parsed) Schedule({}, {*parsed}).at(utc("2026-11-21T00:00"));
    } else {
      const auto parsed = parse_window(text);
      if (!parsed) EXPECT_THAT(parsed.error().message(), HasSubstr("; ")) << text;
      if (parsed) Schedule({*parsed}, {}).at(utc("2026-11-21T00:00"));
      valid += parsed ? 1 : 0;
    }
  }
  EXPECT_GT(valid, 5) << "the pieces no longer make windows";
}

}  // namespace
}  // namespace haulout::agent
