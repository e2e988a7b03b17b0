#include "agent/gates/calendar.hpp"

#include <random>

#include "tests/agent/gates/gates_support.hpp"

namespace haulout::agent {
namespace {

LocalTime clock_at(const std::string& text) {
  return LocalTime(std::chrono::floor<std::chrono::seconds>(utc(text)).time_since_epoch());
}

const std::vector<std::string> some_zones = {
    "UTC",          "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Africa/Cairo",
    "Asia/Gaza",    "Asia/Tehran",   "Asia/Kathmandu",   "Europe/Dublin",       "America/Nuuk",      "America/St_Johns",
    "Pacific/Apia", "Etc/GMT+12",    "EST5EDT",          "Antarctica/Troll",    "Pacific/Kiritimati"};

TEST(ZoneTest, FindsWhatTheSystemKnows) {
  for (const std::string& name : some_zones) {
    const auto zone = Zone::find(name);
    ASSERT_TRUE(zone.has_value()) << zone.error().message();
    EXPECT_EQ(zone->name(), name);
  }
  EXPECT_FALSE(Zone::find("").has_value());
  EXPECT_FALSE(Zone::find("Europe/Atlantis").has_value());
}

TEST(ZoneTest, ConvertsBothWays) {
  struct Row {
    const char* zone;
    const char* instant;
    const char* clock;
    const char* shown;
  };
  const std::vector<Row> rows = {
      {"UTC", "2026-11-21T12:34", "2026-11-21T12:34", "Sat 2026-11-21 12:34 UTC"},
      {"Europe/Berlin", "2026-11-21T12:34", "2026-11-21T13:34", "Sat 2026-11-21 13:34 CET"},
      {"Europe/Berlin", "2026-07-31T23:59", "2026-08-01T01:59", "Sat 2026-08-01 01:59 CEST"},
      {"Asia/Kathmandu", "2026-12-31T20:00", "2027-01-01T01:45", "Fri 2027-01-01 01:45 +0545"},
      {"America/New_York", "2028-03-01T04:59", "2028-02-29T23:59", "Tue 2028-02-29 23:59 EST"},
  };
  for (const Row& row : rows) {
    const Zone zone = *Zone::find(row.zone);
    EXPECT_EQ(zone.local(utc(row.instant)), clock_at(row.clock)) << row.shown;
    EXPECT_EQ(zone.instant(clock_at(row.clock)), utc(row.instant)) << row.shown;
    EXPECT_EQ(zone.shown(utc(row.instant)), row.shown);
  }
}

TEST(ZoneTest, ALaterClockNeverHasAnEarlierInstant) {
  constexpr std::uint32_t seed = 11;
  std::mt19937 random(seed);
  for (const std::string& name : some_zones) {
    const Zone zone = *Zone::find(name);
    for (int i = 0; i < 500; ++i) {
      const LocalTime one = clock_at("2011-01-01T00:00") + std::chrono::minutes(static_cast<int>(random() % 8'000'000));
      const LocalTime other = one + std::chrono::minutes(static_cast<int>(random() % 180));
      EXPECT_LE(zone.instant(one), zone.instant(other)) << name << " " << zone.shown(zone.instant(one));
      EXPECT_GE(zone.local(zone.instant(one)), one) << "at the earliest when the clock shows it";
    }
  }
}

}  // namespace
}  // namespace haulout::agent
