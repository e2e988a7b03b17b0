// Tests which times blackouts remove from windows. 2026-11-21 is a Saturday.
#include "tests/agent/gates/gates_support.hpp"

namespace haulout::agent {
namespace {

TEST(BlackoutTest, CutsOutOfTheWindows) {
  struct Row {
    std::vector<std::string> windows;
    std::vector<std::string> blackouts;
    std::string from;
    std::vector<std::string> expected;
  };
  const std::vector<Row> rows = {
      {{"00:00+12h"},
       {"04:00+2h"},
       "2026-11-21T00:00",  // splits the window
       {"2026-11-21T00:00/2026-11-21T04:00", "2026-11-21T06:00/2026-11-21T12:00", "2026-11-22T00:00/2026-11-22T04:00"}},
      {{"00:00+12h"}, {"00:00+2h"}, "2026-11-21T00:00", {"2026-11-21T02:00/2026-11-21T12:00"}},
      {{"00:00+12h"},
       {"11:00+2h"},
       "2026-11-21T00:00",
       {"2026-11-21T00:00/2026-11-21T11:00", "2026-11-22T00:00/2026-11-22T11:00"}},
      {{"00:00+12h"}, {"12:00+2h"}, "2026-11-21T00:00", {"2026-11-21T00:00/2026-11-21T12:00"}},  // at the window's end
      {{"00:00+12h"}, {"22:00+2h"}, "2026-11-21T00:00", {"2026-11-21T00:00/2026-11-21T12:00"}},
      {{"02:00+2h"}, {"02:00+2h"}, "2026-11-21T00:00", {"never"}},
      {{"02:00+2h"}, {"01:00+4h"}, "2026-11-21T00:00", {"never"}},
      {{"02:00+2h"}, {"01:00+2h", "03:00+1h"}, "2026-11-21T00:00", {"never"}},
      {{"02:00+2h"},
       {"Mon-Sat 00:00"},
       "2026-11-21T00:00",
       {"2026-11-22T02:00/2026-11-22T04:00", "2026-11-29T02:00/2026-11-29T04:00"}},
      {{},
       {"04:00+2h"},
       "2026-11-21T00:00",
       {"2026-11-21T00:00/2026-11-21T04:00", "2026-11-21T06:00/2026-11-22T04:00"}},
      {{}, {"04:00+2h", "05:00+3h"}, "2026-11-21T04:30", {"2026-11-21T08:00/2026-11-22T04:00"}},
      {{}, {"00:00"}, "2026-11-21T00:00", {"never"}},
      {{"Sat 12:00+24h"},
       {"last Sat 00:00"},
       "2026-11-23T00:00",
       {"2026-11-29T00:00/2026-11-29T12:00", "2026-12-05T12:00/2026-12-06T12:00"}},
      {{"22:00+4h"},
       {"Fri 00:00 Europe/Berlin"},
       "2026-11-26T12:00",  // the blackout is Friday in Berlin's local time
       {"2026-11-26T22:00/2026-11-26T23:00", "2026-11-27T23:00/2026-11-28T02:00"}},
  };
  for (const Row& row : rows)
    EXPECT_EQ(openings(schedule(row.windows, row.blackouts), row.from, row.expected.size()), row.expected)
        << row.blackouts.front() << " from " << row.from;
}

TEST(BlackoutTest, Dates) {
  struct Row {
    std::vector<std::string> windows;
    std::string blackout;
    std::string from;
    std::vector<std::string> expected;
  };
  const std::vector<Row> rows = {
      {{},
       "2026-12-20..2027-01-03 Europe/Berlin",
       "2026-12-01T00:00",
       {"2026-12-01T00:00/2026-12-19T23:00", "2027-01-03T23:00/never"}},
      {{}, "2026-12-20..2027-01-03", "2026-12-25T00:00", {"2027-01-04T00:00/never"}},
      {{}, "2026-12-24", "2026-12-01T00:00", {"2026-12-01T00:00/2026-12-24T00:00", "2026-12-25T00:00/never"}},
      {{}, "2028-02-29", "2028-02-01T00:00", {"2028-02-01T00:00/2028-02-29T00:00", "2028-03-01T00:00/never"}},
      {{},
       "2026-03-29 Europe/Berlin",
       "2026-03-01T00:00",
       {"2026-03-01T00:00/2026-03-28T23:00", "2026-03-29T22:00/never"}},
      {{"Sat 22:00+4h"},
       "2026-12-20..2027-01-03",
       "2026-12-19T12:00",
       {"2026-12-19T22:00/2026-12-20T00:00", "2027-01-09T22:00/2027-01-10T02:00"}},
      {{"Sat 22:00+4h"}, "2026-12-20..2029-01-03", "2026-12-20T12:00", {"never"}},
      {{"Sat 22:00+4h"}, " 2026-12-20..2027-01-03  ", "2026-12-20T12:00", {"2027-01-09T22:00/2027-01-10T02:00"}},
  };
  for (const Row& row : rows)
    EXPECT_EQ(openings(schedule(row.windows, {row.blackout}), row.from, row.expected.size()), row.expected)
        << row.blackout << " from " << row.from;
}

}  // namespace
}  // namespace haulout::agent
