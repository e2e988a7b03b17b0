// The types of points in time and durations for the whole tree. Parses durations in the syntax of Go and kubectl
// ("90s", "1h30m", "1.5h", "300ms", "1.5µs", "0"), and formats them for people. Reads no clock; that is
// retry/clock.hpp. Pure.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.hpp"

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

// Fails with Errc::invalid if a unit is unknown or missing, if a number is missing, or if the duration exceeds the
// range of the clock (292 years). The message says how to write a duration. Only "0" needs no unit. A sign is accepted;
// the caller must check for a negative duration.
Result<Duration> parse_duration(std::string_view text);

// Formats a duration for people, with at most two units, and rounded towards zero: "850ms", "42s", "3m05s", "2h07m",
// "30d00h".
std::string format_duration(Duration duration);
// Does the same after rounding to the nearest whole second.
std::string format_whole_seconds(Duration duration);

}  // namespace haulout
