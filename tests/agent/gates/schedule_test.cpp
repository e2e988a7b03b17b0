// Tests several windows together, which durations fit into them, and how a schedule describes itself. 2026-11-21 is a
// Saturday.
#include <random>

#include "tests/agent/gates/gates_support.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using Expected = std::vector<std::string>;

TEST(ScheduleTest, WithoutWindowsAlwaysOpen) {
  EXPECT_TRUE(Schedule().always());
  EXPECT_FALSE(schedule({"22:00+4h"}).always());
  EXPECT_FALSE(schedule({}, {"22:00+4h"}).always());
  EXPECT_EQ(Schedule().at(utc("2026-11-21T00:00")), Schedule::State{});
  EXPECT_TRUE(Schedule().fits(utc("2026-11-21T00:00"), 10000h));
  EXPECT_EQ(utc(Schedule().next_fit(utc("2026-11-21T00:00"), 1h)), "2026-11-21T00:00");
}

TEST(ScheduleTest, WindowsAreAUnion) {
  struct Row {
    std::vector<std::string> windows;
    std::string from;
    Expected expected;
  };
  const std::vector<Row> rows = {
      {{"00:00+12h", "12:00+12h"}, "2026-11-21T05:00", {"2026-11-21T05:00/never"}},
      {{"Sat 00:00", "Sun 00:00"}, "2026-11-23T00:00", {"2026-11-28T00:00/2026-11-30T00:00"}},
      {{"01:00+3h", "03:00+3h"}, "2026-11-21T00:00", {"2026-11-21T01:00/2026-11-21T06:00"}},
      {{"03:00+3h", "01:00+3h"}, "2026-11-21T00:00", {"2026-11-21T01:00/2026-11-21T06:00"}},
      {{"01:00+8h", "03:00+1h"}, "2026-11-21T00:00", {"2026-11-21T01:00/2026-11-21T09:00"}},
      {{"01:00+1h", "01:00+1h"},
       "2026-11-21T00:00",
       {"2026-11-21T01:00/2026-11-21T02:00", "2026-11-22T01:00/2026-11-22T02:00"}},
      {{"Mon 01:00+1h", "Thu 05:00+1h"},
       "2026-11-21T00:00",
       {"2026-11-23T01:00/2026-11-23T02:00", "2026-11-26T05:00/2026-11-26T06:00", "2026-11-30T01:00/2026-11-30T02:00"}},
      {{"02:00+1h Europe/Berlin", "02:00+1h America/New_York"},
       "2026-11-21T00:00",
       {"2026-11-21T01:00/2026-11-21T02:00", "2026-11-21T07:00/2026-11-21T08:00"}},
  };
  for (const Row& row : rows)
    EXPECT_EQ(openings(schedule(row.windows), row.from, row.expected.size()), row.expected) << row.windows.front();
}

TEST(ScheduleTest, FitsBeforeTheEnd) {
  struct Row {
    std::vector<std::string> windows;
    std::vector<std::string> blackouts;
    std::string start;
    Duration needed;
    bool fits;
  };
  const std::vector<Row> rows = {
      {{"01:00+2h"}, {}, "2026-11-21T01:00", 2h, true},
      {{"01:00+2h"}, {}, "2026-11-21T01:00", 2h + 1ns, false},
      {{"01:00+2h"}, {}, "2026-11-21T02:30", 30min, true},
      {{"01:00+2h"}, {}, "2026-11-21T02:31", 30min, false},
      {{"01:00+2h"}, {}, "2026-11-21T00:59", 1s, false},
      {{"01:00+2h"}, {}, "2026-11-21T03:00", 0s, false},
      {{"01:00+2h", "03:00+2h"}, {}, "2026-11-21T01:00", 4h, true},
      {{"01:00+2h"}, {"02:00+1h"}, "2026-11-21T01:00", 61min, false},
      {{"01:00+2h"}, {"02:00+1h"}, "2026-11-21T01:00", 60min, true},
      {{}, {"02:00+1h"}, "2026-11-21T01:00", 61min, false},
      {{"00:00+24h"}, {}, "2026-11-21T01:00", 1000h, true},
      {{"22:00-04:00 Europe/Berlin"}, {}, "2026-03-28T21:00", 5h, true},
      {{"22:00-04:00 Europe/Berlin"}, {}, "2026-03-28T21:00", 5h + 1s, false},
      {{"01:00+2h"}, {}, "2026-11-21T01:00", Duration::max(), false},
  };
  for (const Row& row : rows)
    EXPECT_EQ(schedule(row.windows, row.blackouts).fits(utc(row.start), row.needed), row.fits)
        << row.start << " for " << row.needed.count() << " ns";
}

TEST(ScheduleTest, NextFit) {
  const Schedule two = schedule({"01:00+1h", "Sun 12:00+6h"});
  EXPECT_EQ(utc(two.next_fit(utc("2026-11-21T01:30"), 30min)), "2026-11-21T01:30");
  EXPECT_EQ(utc(two.next_fit(utc("2026-11-21T01:30"), 31min)), "2026-11-22T01:00");
  EXPECT_EQ(utc(two.next_fit(utc("2026-11-21T01:30"), 2h)), "2026-11-22T12:00");
  EXPECT_EQ(utc(two.next_fit(utc("2026-11-22T13:00"), 6h)), "2026-11-29T12:00");
  EXPECT_EQ(utc(two.next_fit(utc("2026-11-22T13:00"), 7h)), "never");
  EXPECT_EQ(utc(schedule({"Sat 00:00"}, {"2026-11-28"}).next_fit(utc("2026-11-23T00:00"), 1h)), "2026-12-05T00:00");
}

TEST(ScheduleTest, Describes) {
  struct Row {
    Schedule schedule;
    std::string now;
    std::string expected;
  };
  const std::vector<Row> rows = {
      {Schedule(), "2026-11-21T00:00", "no window is set: always open"},
      {schedule({"Sat 01:00+6h Europe/Berlin"}), "2026-11-23T00:00",
       "outside the window: updates may begin again Sat 2026-11-28 01:00 CET"},
      {schedule({"Sat 01:00+6h Europe/Berlin"}), "2026-11-28T00:00",
       "inside the window: the window closes Sat 2026-11-28 07:00 CET"},
      {schedule({"Sat 01:00+6h Europe/Berlin"}), "2026-06-22T00:00",
       "outside the window: updates may begin again Sat 2026-06-27 01:00 CEST"},
      {schedule({"Sat 01:00+6h"}), "2026-11-23T00:00",
       "outside the window: updates may begin again Sat 2026-11-28 01:00 UTC"},
      {schedule({"Sat 01:00+6h Australia/Lord_Howe"}), "2026-11-23T00:00",
       "outside the window: updates may begin again Sat 2026-11-28 01:00 +11"},
      {schedule({"00:00+6h"}, {"04:00+4h"}), "2026-11-23T01:00",
       "inside the window: a blackout begins Mon 2026-11-23 04:00 UTC"},
      {schedule({"00:00+24h"}), "2026-11-23T00:00", "inside the window: it does not close within two years"},
      {schedule({"cron(0 0 29 2 *)"}), "2028-03-01T00:00", "outside the window: no update may begin within two years"},
      {schedule({}, {"12:00+1h"}), "2026-11-23T00:00",
       "outside the blackouts: the next one begins Mon 2026-11-23 12:00 UTC"},
      {schedule({}, {"2026-11-20..2026-11-21"}), "2026-11-23T00:00",
       "outside the blackouts: none begins within two years"},
      {schedule({}, {"12:00+1h"}), "2026-11-23T12:30",
       "in the blackout \"12:00+1h\": updates may begin again Mon 2026-11-23 13:00 UTC"},
      {schedule({"08:00+5h"}, {"12:00+1h"}), "2026-11-23T12:30",
       "in the blackout \"12:00+1h\": updates may begin again Tue 2026-11-24 08:00 UTC"},
      {schedule({"08:00+2h"}, {"07:00+12h"}), "2026-11-23T08:30",
       "in the blackout \"07:00+12h\": no update may begin within two years"},
      {schedule({"08:00+2h"}, {"12:00+1h"}), "2026-11-23T12:30",
       "outside the window: updates may begin again Tue 2026-11-24 08:00 UTC"},
      {schedule({}, {"2026-11-20..2026-11-24 Europe/Berlin"}), "2026-11-23T00:00",
       "in the blackout \"2026-11-20..2026-11-24 Europe/Berlin\": updates may begin again Wed 2026-11-25 00:00 CET"},
  };
  for (const Row& row : rows) EXPECT_EQ(row.schedule.describe(utc(row.now)), row.expected);
}

TEST(ScheduleTest, ClocksFarOffAreNoHarm) {
  for (const Schedule& any : {schedule({"Sat 01:00+6h Europe/Berlin"}), schedule({"cron(* * * * *)+1m"}),
                              schedule({}, {"2026-12-20..2027-01-03"})}) {
    for (const WallTime at : {WallTime::min(), WallTime(), WallTime::max()}) {
      const Schedule::State state = any.at(at);
      EXPECT_TRUE(state.open ? !state.next_open : !state.until);
      EXPECT_FALSE(any.describe(at).empty());
      any.fits(at, 1h);
    }
  }
}

// The state that Schedule::at() returns holds exactly until the time that it names, at which the schedule opens or
// closes.
TEST(ScheduleTest, WakesExactlyWhenTheAnswerChanges) {
  const std::vector<Schedule> schedules = {
      schedule({"Mon-Fri 22:00-04:00 Europe/Berlin", "last Sun 00:00+30h America/New_York"},
               {"2nd Tue 00:00", "Wed 23:00+90m"}),
      schedule({"02:30+1h Europe/Berlin", "01:45+1h Australia/Lord_Howe"}),
      schedule({}, {"Fri 12:00+72h Africa/Cairo", "2026-03-20..2026-04-10 Australia/Lord_Howe"}),
      schedule({"cron(*/7 */3 * * *)+5m America/New_York"}, {"cron(0 */5 * * *)+40m"}),
  };
  constexpr std::uint32_t seed = 20261121;
  std::mt19937 random(seed);
  for (std::size_t which = 0; which < schedules.size(); ++which) {
    const Schedule& one = schedules[which];
    for (int i = 0; i < 300; ++i) {
      const WallTime now = utc("2026-01-01T00:00") + std::chrono::seconds(static_cast<int>(random() % (366 * 86400)));
      const Schedule::State state = one.at(now);
      const auto changes = state.open ? state.until : state.next_open;
      ASSERT_TRUE(changes) << which << " at " << utc(now);
      ASSERT_GT(*changes, now);
      EXPECT_NE(one.at(*changes).open, state.open) << which << " at " << utc(now) << " until " << utc(*changes);
      EXPECT_EQ(one.at(*changes - 1us).open, state.open) << which << " at " << utc(now) << " until " << utc(*changes);
      const auto between = now + (*changes - now) / 1000 * static_cast<int>(random() % 1000);
      EXPECT_EQ(one.at(between).open, state.open) << which << " from " << utc(now) << " at " << utc(between);
    }
  }
}

}  // namespace
}  // namespace haulout::agent
