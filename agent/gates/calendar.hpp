// The calendar of maintenance windows: time zones, the days on which a window starts, and the resulting intervals of
// real time.
#pragma once

#include <bitset>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace date {
class time_zone;  // NOLINT(readability-identifier-naming): the library's own name
}

namespace haulout::agent {

// Local date and time, as a wall clock shows it.
using LocalTime = std::chrono::local_seconds;

// A time zone: an IANA zone from the system's zoneinfo, or UTC, which needs no files. Only this class uses the date
// library. A small value; it borrows a zone that lives as long as the program. Zoneinfo lists the changes to and from
// summer time until the year 2037; later changes are not known.
class Zone {
 public:
  Zone() = default;  // UTC
  // Finds a zone by its name. Fails with Errc::invalid if the name is unknown; the message suggests the nearest known
  // name. Fails with Errc::unavailable if zoneinfo is missing or cannot be used. Reads files.
  static Result<Zone> find(std::string_view name);

  const std::string& name() const { return name_; }
  LocalTime local(WallTime at) const;
  // Returns the first instant at which the wall clock shows `shown`. If a change of the clock skips `shown`, returns
  // the instant of the change. Monotone: a later `shown` never has an earlier instant.
  WallTime instant(LocalTime shown) const;
  // Returns the local time for messages: "Sat 2026-11-28 01:00 CET".
  std::string shown(WallTime at) const;

 private:
  std::string name_ = "UTC";
  const date::time_zone* zone_ = nullptr;  // borrowed; null for UTC
};

// The days of the calendar on which a window starts: weekdays, nth weekdays of the month, the days that the three day
// fields of cron select (day of month, month and day of week), or the days from one date to another. Pure.
struct Days {
  // The first and the last day, both included; nothing: no limit.
  std::optional<std::pair<std::chrono::local_days, std::chrono::local_days>> between{};
  std::bitset<13> months = ~std::bitset<13>();         // bit 1 is January
  std::bitset<32> days_of_month = ~std::bitset<32>();  // bit 1 is the first day
  std::bitset<7> weekdays = ~std::bitset<7>();         // bit 0 is Sunday
  std::bitset<7> nth = {};  // bit n: the nth such weekday of the month (1 to 5); bit 6: the last one; no bit: all
  bool either = false;      // day of month or weekday must match, not both (cron, if both are restricted)

  static constexpr std::size_t last = 6;

  bool contains(std::chrono::year_month_day date) const;
  // Returns true if any day of the calendar can match; February 30 cannot, for example.
  bool possible() const;
};

// An interval that includes `begin` but not `end`.
struct Interval {
  WallTime begin;
  WallTime end;
  bool contains(WallTime at) const { return begin <= at && at < end; }
  bool operator==(const Interval&) const = default;
};

// The interval ends when the wall clock next shows this time of day after the start; 24 h is midnight.
struct UntilClock {
  std::chrono::minutes time;
};
// The interval has this length in real time.
struct ForElapsed {
  std::chrono::seconds length;
};
using Length = std::variant<UntilClock, ForElapsed>;

// Converts the starts and lengths of a window to intervals of real time, from local days, times of day and a time zone.
// The result is correct across changes of the clock: a start that the clock skips moves to the first instant after the
// change, and a start that the clock shows twice counts only the first time. Pure.
class Recurrence {
 public:
  // `times` are times of day, ascending, at least one.
  Recurrence(Days days, std::vector<std::chrono::minutes> times, Length length, Zone zone);

  // Returns the intervals that start on this day, ascending. Intervals that touch or overlap are merged.
  std::vector<Interval> on(std::chrono::local_days day) const;
  // Returns the latest end of all intervals that contain `at`; nothing if there is none.
  std::optional<WallTime> end_of(WallTime at) const;
  // Returns the first start after `at` and before `horizon`. Ignores starts within another interval of the same day.
  std::optional<WallTime> next_start(WallTime at, WallTime horizon) const;
  // Returns true if the intervals are only on certain dates, and the last of them has ended.
  bool is_over(WallTime at) const;
  const Zone& zone() const { return zone_; }

 private:
  struct Span {  // times since local midnight, on a day without a change of the clock
    std::chrono::seconds begin;
    std::chrono::seconds end;
  };
  Interval starting(std::chrono::local_days day, std::chrono::minutes time) const;

  Days days_;
  std::vector<std::chrono::minutes> times_;
  Length length_;
  Zone zone_;
  std::vector<Span> spans_;       // only for ForElapsed: the intervals of a day, merged
  std::chrono::days looks_back_;  // an interval that contains an instant starts at most this many local days before it
};

}  // namespace haulout::agent
