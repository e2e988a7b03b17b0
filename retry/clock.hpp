// Time as a dependency: nothing in this tree reads the real clock but RealClock, so that everything can be tested in
// virtual time. Monotonic time measures and waits; wall time is shown to people and written into objects.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>

namespace haulout {

// A point of monotonic time. Functions that may block take one as their deadline; durations live in options only.
using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;
// Wall time in microseconds (the precision of metav1.MicroTime); it may jump.
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  virtual WallTime wall_now() const = 0;
  // Returns true at `when` or, if that has passed, as soon as the executor gets to it; false when cancelled (terminal),
  // without unwinding: for deadlines, which are cancelled a thousand times more often than they are reached. Leaves no
  // timer behind. TimePoint::max() waits until cancelled.
  virtual boost::asio::awaitable<bool> doze_until(TimePoint when) = 0;
  // The same, but unwinds when cancelled: throws operation_aborted.
  boost::asio::awaitable<void> sleep_until(TimePoint when);
};

// Adds without overflow: a deadline of max() plus anything stays max().
inline TimePoint saturating_add(TimePoint base, Duration delta) {
  return delta > TimePoint::max() - base ? TimePoint::max() : base + delta;
}

}  // namespace haulout
