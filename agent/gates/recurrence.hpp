// Converts the starts and lengths of a window to intervals of real time, from local days, times of day and a time zone.
// It is correct across changes of the clock. A start that the clock skips moves to the first instant after the change.
// A start that the clock shows twice counts only the first time. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <variant>
#include <vector>

#include "agent/gates/days.hpp"
#include "agent/gates/zone.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

// Half open: `end` is not part of the interval.
struct Interval {
  WallTime begin;
  WallTime end;
  bool contains(WallTime at) const { return begin <= at && at < end; }
  bool operator==(const Interval&) const = default;
};

// The interval ends when the clock next shows this time of day after the start; 24 h is midnight.
struct UntilClock {
  std::chrono::minutes time;
};
// The interval has this length in real time.
struct ForElapsed {
  std::chrono::seconds length;
};
using Length = std::variant<UntilClock, ForElapsed>;

class Recurrence {
 public:
  // `times` are times of day, ascending, at least one.
  Recurrence(Days days, std::vector<std::chrono::minutes> times, Length length, Zone zone);

  // The intervals that start on this day, ascending. Intervals that touch or overlap are merged.
  std::vector<Interval> on(std::chrono::local_days day) const;
  // The latest end of all intervals that contain `at`; nothing if there is none.
  std::optional<WallTime> end_of(WallTime at) const;
  // The first start after `at` and before `horizon`. Ignores starts within another interval of the same day.
  std::optional<WallTime> next_start(WallTime at, WallTime horizon) const;
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
  std::chrono::days looks_back_;  // an interval may start up to this many local days before an instant in it
};

}  // namespace haulout::agent
