// Tests that the windows of Haulout are open at exactly the times at which kured reboots nodes.
#include "cli/migrate/kured_window.hpp"

#include <gmock/gmock.h>

#include "agent/gates/window.hpp"

namespace haulout::cli {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string> every_day = {"su", "mo", "tu", "we", "th", "fr", "sa"};

struct Row {
  std::vector<std::string> days;
  std::string start, end, zone;
  std::vector<std::string> windows;
};

TEST(KuredWindowTest, TimesBecomeWindows) {
  const Row rows[] = {
      {every_day, "0:00", "23:59:59", "UTC", {}},
      {every_day, "2:00", "5:00", "UTC", {"02:00-05:00"}},
      {every_day, "22:00", "23:59:59", "UTC", {"22:00-24:00"}},
      {{"tue", "WED", "thursday"}, "2:00", "5:00", "Europe/Berlin", {"Tue-Thu 02:00-05:00 Europe/Berlin"}},
      {{"sat", "sun"}, "2am", "5am", "UTC", {"Sat,Sun 02:00-05:00"}},
      {{"0", "6"}, "0:00", "23:59:59", "UTC", {"Sat,Sun 00:00-24:00"}},
      {{"mo", "we", "fr"}, "9:00", "16:59:59", "UTC", {"Mon,Wed,Fri 09:00-17:00"}},
      {{"fr", "sa", "su", "mo"}, "3pm", "4pm", "UTC", {"Mon,Fri-Sun 15:00-16:00"}},
      {every_day, "23:00", "5:00", "Europe/Berlin", {"23:00-05:00 Europe/Berlin"}},
      {{"mon", "tue"}, "23:00", "5:00", "UTC", {"Mon,Tue 00:00-05:00", "Mon,Tue 23:00-24:00"}},
      {{"fri"}, "10pm", "0:00", "UTC", {"Fri 22:00-24:00"}},
      {every_day, "12pm", "12am", "UTC", {"12:00-24:00"}},
      {{"mon", ""}, "20", "21", "UTC", {"Mon 20:00-21:00"}},
      {every_day, "2:00:30", "5:00:20", "UTC", {"02:01-05:00"}},
  };
  for (const Row& row : rows) {
    const KuredWindow window = kured_window(row.days, row.start, row.end, row.zone);
    EXPECT_EQ(window.windows, row.windows) << row.start << " to " << row.end;
    EXPECT_EQ(window.problem, "") << row.start << " to " << row.end;
  }
}

TEST(KuredWindowTest, WhatKuredRefusesOrNeverDoesIsAProblem) {
  const struct {
    std::vector<std::string> days;
    const char *start, *end, *says;
  } rows[] = {
      {{}, "1:00", "2:00", "no day on which it may reboot"},
      {{""}, "1:00", "2:00", "no day on which it may reboot"},
      {{"someday"}, "1:00", "2:00", "no weekday \"someday\""},
      {{"7"}, "1:00", "2:00", "no weekday \"7\""},
      {{" tue"}, "1:00", "2:00", "no weekday \" tue\""},
      {every_day, "25:00", "2:00", "no time of day \"25:00\""},
      {every_day, "1:00", "9:30pm", "no time of day \"9:30pm\""},
      {every_day, "1:00", "3PM", "no time of day \"3PM\""},
      {every_day, "1:00", "1:00", "shorter than a minute"},
      {every_day, "5:00:10", "5:00:20", "shorter than a minute"},
  };
  for (const auto& row : rows) {
    const KuredWindow window = kured_window(row.days, row.start, row.end, "UTC");
    EXPECT_THAT(window.windows, IsEmpty()) << row.says;
    EXPECT_THAT(window.problem, HasSubstr(row.says));
  }
}

TEST(KuredWindowTest, TellsWhatAPersonShouldKnow) {
  EXPECT_THAT(kured_window({"mon"}, "23:00", "5:00", "UTC").note, HasSubstr("both sides of midnight"));
  EXPECT_THAT(kured_window(every_day, "23:00", "5:00", "UTC").note, IsEmpty());
  EXPECT_THAT(kured_window(every_day, "2:00:30", "5:00", "UTC").note, HasSubstr("begin and end with a minute"));
  EXPECT_THAT(kured_window(every_day, "2:00", "4:59:59", "UTC").note, IsEmpty());
}

// What kured's own code says (pkg/timewindow), for a day without a change of the clock.
bool kured_reboots(const std::vector<std::string>& weekdays, seconds start, seconds end,
                   std::chrono::local_seconds at) {
  const auto day = std::chrono::floor<days>(at);
  const std::chrono::weekday weekday{day};
  const bool today = std::ranges::any_of(
      weekdays, [&](const std::string& name) { return kured_weekday(name) == weekday.c_encoding(); });
  if (!today) return false;
  const auto last = day + end + 999ms;
  if (start <= end) return at >= day + start && at <= last;
  return at < last || at >= day + start;
}

TEST(KuredWindowTest, IsOpenWhenKuredReboots) {
  const std::vector<std::vector<std::string>> weeks = {every_day, {"mon", "tue"}, {"fri"},
                                                       {"sun"},   {"sat", "sun"}, {"mon", "wed", "sun"}};
  const std::pair<const char*, const char*> times[] = {{"0:00", "23:59:59"}, {"2:00", "5:00"},  {"23:00", "5:00"},
                                                       {"22:30", "0:00"},    {"0:01", "0:00"},  {"12pm", "11:59:59"},
                                                       {"20:00", "23:59"},   {"3am", "12:30pm"}};
  for (const char* zone : {"UTC", "America/New_York"}) {
    for (const auto& week : weeks) {
      for (const auto& [start, end] : times) {
        const KuredWindow window = kured_window(week, start, end, zone);
        ASSERT_EQ(window.problem, "") << start;
        std::vector<agent::Window> windows;
        for (const std::string& text : window.windows) {
          auto parsed = agent::parse_window(text);
          ASSERT_TRUE(parsed) << text << ": " << parsed.error().message();
          windows.push_back(*std::move(parsed));
        }
        const agent::Schedule schedule(std::move(windows), {});
        // Two weeks of summer, just before and just after each ten minutes: kured adds a second to the end.
        const auto place = agent::Zone::find(zone);
        ASSERT_TRUE(place);
        const std::chrono::local_seconds begin = std::chrono::local_days(std::chrono::year(2026) / 6 / 1);
        for (auto at = begin; at < begin + days(14); at += 10min)
          for (const auto step : {-1s, 2s})
            ASSERT_EQ(schedule.at(place->instant(at + step)).open,
                      kured_reboots(week, *kured_time(start), *kured_time(end), at + step))
                << start << " to " << end << ": " << (window.windows.empty() ? "always" : window.windows.front())
                << " at " << (at + step).time_since_epoch().count();
      }
    }
  }
}

TEST(KuredWindowTest, ReadsTheTimesThatKuredReads) {
  const std::pair<const char*, seconds> good[] = {
      {"0:00", 0s}, {"9:05", 9h + 5min}, {"23:59:59", 24h - 1s},  {"7", 7h},    {"07", 7h},
      {"3pm", 15h}, {"03pm", 15h},       {"03:04pm", 15h + 4min}, {"12am", 0s}, {"12:30pm", 12h + 30min}};
  for (const auto& [text, time] : good) EXPECT_EQ(kured_time(text), time) << text;
  for (const char* text :
       {"", "24:00", "5:0", "5:60", "1:00:60", "3:04pm", "13pm", "5 am", "5:00 ", "5:00:00pm", "-1", "x"})
    EXPECT_EQ(kured_time(text), std::nullopt) << text;
}

}  // namespace
}  // namespace haulout::cli
