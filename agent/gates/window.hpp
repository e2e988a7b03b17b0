// Maintenance windows and black-outs: when a node may begin its update. Pure; the wall time is passed in. Nothing
// polls: every answer names the instant at which it ends.
//
// One window is   [DAYS] HH:MM [+DURATION | -HH:MM] [ZONE]   or   cron(FIELDS)[+DURATION | -HH:MM] [ZONE]
//
//   22:00+4h                           every day, four hours
//   Sat,Sun 01:00+6h Europe/Berlin     by the clock of that zone; without a zone, UTC
//   Mon-Fri 22:00-04:00                over midnight; the days are those of the start: the last night ends on Saturday
//   2nd Tue 03:00+2h                   the nth weekday of the month: 1st to 5th and last; lists, too: 1st,3rd Sat
//   Sat 00:00                          without an end: until midnight
//   cron(0 2 * * 1-5)+3h Europe/Berlin the starts as cron writes them, see cron.hpp
//
// Weekdays have three letters or their whole name, in any case; ranges may go over the end of the week (Fri-Mon). A
// DURATION is written as Go does (90m, 1h30m), from a minute to 31 days, and is real time. An end HH:MM is what the
// clock shows, the next time after the start, 24:00 included. Where the clock is put forward over a start or an end,
// the first instant after the change counts; where it is put back, the first of the two.
//
// A black-out is written in the same way, or as dates, both included:   2026-12-20..2027-01-03 [ZONE]   or one date.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/gates/recurrence.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

struct Window {
  std::string text;  // as it was written
  Recurrence recurrence;
};

struct Blackout {
  std::string text;
  Zone zone;
  std::variant<Recurrence, Interval> when;
};

// At which character something is wrong, what, and what to write instead; the caller names the text. Errc::invalid;
// Errc::unavailable where a zone is named and the machine has no usable zoneinfo.
Result<Window> parse_window(std::string_view text);
Result<Blackout> parse_blackout(std::string_view text);

// The union of the windows without the black-outs; no windows: open whenever there is no black-out.
class Schedule {
 public:
  Schedule() = default;
  Schedule(std::vector<Window> windows, std::vector<Blackout> blackouts);

  // Neither windows nor black-outs.
  bool always() const;

  struct State {
    bool open = true;
    std::optional<WallTime> until{};      // when it closes, if open; nothing: not within two years
    std::optional<WallTime> next_open{};  // if closed; nothing: not within two years
    bool operator==(const State&) const = default;
  };
  State at(WallTime now) const;
  // Whether it is open at `start` and stays so for as long as is needed.
  bool fits(WallTime start, Duration needed) const;
  // The first instant from `from` on at which something of this length fits; nothing: none within two years.
  std::optional<WallTime> next_fit(WallTime from, Duration needed) const;

  // "outside the window: next one opens Sat 2026-11-28 01:00 CET", by the clock of the first window, or else black-out.
  std::string describe(WallTime now) const;
  // "Sat 2026-11-28 01:00 CET", by the same clock.
  std::string shown(WallTime at) const;

 private:
  bool in_window(WallTime at) const;
  std::optional<WallTime> window_end(WallTime at, WallTime horizon) const;
  std::optional<WallTime> next_opening(WallTime now, WallTime horizon) const;

  std::vector<Window> windows_;
  std::vector<Blackout> blackouts_;
};

}  // namespace haulout::agent
