// A window's starts and lengths as intervals of real time: local days, times of day and a zone in, instants out, right
// over every change of the clocks. A start that the clock leaves out moves to the first instant that exists; one that
// it shows twice counts once, the first time. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <variant>
#include <vector>

#include "agent/gates/days.hpp"
#include "agent/gates/zone.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

// Half open: `end` is not in it.
struct Interval {
  WallTime begin;
  WallTime end;
  bool contains(WallTime at) const { return begin <= at && at < end; }
  bool operator==(const Interval&) const = default;
};

// The next time the clock shows this time of day after the start; 24 h is midnight.
struct UntilClock {
  std::chrono::minutes time;
};
// This long, in real time.
struct ForElapsed {
  std::chrono::seconds length;
};
using Length = std::variant<UntilClock, ForElapsed>;

class Recurrence {
 public:
  // `times` of day, ascending, at least one.
  Recurrence(Days days, std::vector<std::chrono::minutes> times, Length length, Zone zone);

  // What starts on this day, merged where it touches or overlaps, ascending.
  std::vector<Interval> on(std::chrono::local_days day) const;
  // The latest end of the intervals that `at` lies in; nothing if it lies in none.
  std::optional<WallTime> end_of(WallTime at) const;
  // The first start after `at` and before `horizon`. Starts inside of another interval of the same day are none.
  std::optional<WallTime> next_start(WallTime at, WallTime horizon) const;
  const Zone& zone() const { return zone_; }

 private:
  struct Span {  // since local midnight, on a day on which no clock changes
    std::chrono::seconds begin;
    std::chrono::seconds end;
  };
  Interval starting(std::chrono::local_days day, std::chrono::minutes time) const;

  Days days_;
  std::vector<std::chrono::minutes> times_;
  Length length_;
  Zone zone_;
  std::vector<Span> spans_;       // of ForElapsed
  std::chrono::days looks_back_;  // that many local days before an instant may hold the start of what it lies in
};

}  // namespace haulout::agent
