// The types of points in time and durations for the whole tree. Reads no clock; that is retry/clock.hpp. Pure.
#pragma once

#include <chrono>

namespace haulout {

// A point of monotonic time. Functions that wait take one as their deadline; durations are used in options only.
using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;
// Wall time in microseconds (the precision of metav1.MicroTime). It may jump when the clock is set.
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

// Returns base + delta, or max() if that would overflow. max() plus any `delta` of at least 0 is max().
inline TimePoint saturating_add(TimePoint base, Duration delta) {
  return delta > TimePoint::max() - base ? TimePoint::max() : base + delta;
}

}  // namespace haulout
