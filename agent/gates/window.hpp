// Maintenance windows and black-outs: the times at which a node may begin its update. The caller passes the wall time.
// Pure, except that parsing a time zone reads zoneinfo. Callers need not poll, because every answer contains the
// instant until which it holds.
//
// The syntax of a window is   [DAYS] HH:MM [+DURATION | -HH:MM] [ZONE]   or   cron(FIELDS)[+DURATION | -HH:MM] [ZONE]
// DAYS are weekdays, a date or a range of dates.
//
//   22:00+4h                           every day, four hours
//   Sat,Sun 01:00+6h Europe/Berlin     in that time zone; the default is UTC
//   Mon-Fri 22:00-04:00                over midnight; the days are those of the start, so the last one ends on Saturday
//   2nd Tue 03:00+2h                   the nth weekday of the month, 1st to 5th or last; or a list like 1st,3rd Sat
//   2026-12-24 22:00+4h                once, on that date; or 2026-12-24..2026-12-27 22:00+4h, on each of these dates
//   Sat 00:00                          without an end, the window lasts until midnight
//   cron(0 2 * * 1-5)+3h Europe/Berlin starts in the syntax of cron
//
// The five fields of cron:
//   minute 0-59 · hour 0-23 · day of month 1-31 · month 1-12 or JAN-DEC · day of week 0-7 or SUN-SAT (0, 7: Sunday)
// A field is `*`, a number, a name, a range `a-b`, a step `*/n` or `a-b/n`, or a list of these with commas. As in Vixie
// cron, if neither day field starts with `*`, a day must match only one of them. Otherwise it must match both.
//
// Weekdays are written with three letters or in full, in upper or lower case. Ranges may cross the end of the week
// (Fri-Mon). A DURATION has the syntax of Go (90m, 1h30m), is at least a minute and at most 31 days, and is real time.
// An end HH:MM is the next time after the start at which the clock shows HH:MM; 24:00 is allowed. If the clock is set
// forward over a start or an end, the first instant after the change counts. If it is set back, the first of the two
// instants counts.
//
// A black-out has the same syntax, or consists only of dates, and lasts from the beginning of the first to the end of
// the last one:   2026-12-20..2027-01-03 [ZONE]   or   2026-12-24 [ZONE]
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/gates/calendar.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

struct Window {
  std::string text;  // as its author wrote it
  Recurrence recurrence;
};

struct Blackout {
  std::string text;
  Zone zone;
  std::variant<Recurrence, Interval> when;
};

// Parse the text of a window or a black-out. They fail with Errc::invalid if the text is wrong: the message says at
// which character, what is wrong and what to write instead; the caller adds the text. They fail with Errc::unavailable
// if the text names a zone and the machine has no usable zoneinfo.
Result<Window> parse_window(std::string_view text);
Result<Blackout> parse_blackout(std::string_view text);

// Return true if the window or the black-out is only for certain dates, and all of them are past.
bool is_over(const Window& window, WallTime now);
bool is_over(const Blackout& blackout, WallTime now);

// The union of the windows minus the black-outs. Without windows it is open except in black-outs.
class Schedule {
 public:
  Schedule() = default;
  Schedule(std::vector<Window> windows, std::vector<Blackout> blackouts);

  // Returns true if there are neither windows nor black-outs.
  bool always() const;

  struct State {
    bool open = true;
    std::optional<WallTime> until{};      // if open: when it closes; nothing if not within two years
    std::optional<WallTime> next_open{};  // if closed: when it opens; nothing if not within two years
    bool operator==(const State&) const = default;
  };
  State at(WallTime now) const;
  // Returns true if the schedule is open at `start` and stays open for the duration `needed`.
  bool fits(WallTime start, Duration needed) const;
  // Returns the first instant at or after `from` at which fits() is true; nothing if there is none within two years.
  std::optional<WallTime> next_fit(WallTime from, Duration needed) const;

  // Returns a sentence for people: "outside the window: the next one opens Sat 2026-11-28 01:00 CET". The time zone is
  // that of the first window, or of the first black-out if there are no windows.
  std::string describe(WallTime now) const;
  // Returns what happens at State::until: "the window closes Sat 2026-11-28 07:00 CET", or a black-out begins.
  std::string closing(WallTime until) const;
  // Returns a time in the same time zone: "Sat 2026-11-28 01:00 CET".
  std::string shown(WallTime at) const;

 private:
  bool in_window(WallTime at) const;
  std::optional<WallTime> window_end(WallTime at, WallTime horizon) const;
  std::optional<WallTime> next_opening(WallTime now, WallTime horizon) const;

  std::vector<Window> windows_;
  std::vector<Blackout> blackouts_;
};

}  // namespace haulout::agent
