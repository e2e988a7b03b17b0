// Points of time and spans of time, as all of the tree names them. Pure: no clock is read here (see retry/clock.hpp).
#pragma once

#include <chrono>

namespace haulout {

// A point of monotonic time. Functions that may block take one as their deadline; durations live in options only.
using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;
// Wall time in microseconds (the precision of metav1.MicroTime); it may jump.
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

// Adds without overflow: a deadline of max() plus anything stays max().
inline TimePoint saturating_add(TimePoint base, Duration delta) {
  return delta > TimePoint::max() - base ? TimePoint::max() : base + delta;
}

}  // namespace haulout
