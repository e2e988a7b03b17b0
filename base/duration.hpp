// Parses durations in the syntax of Go and kubectl ("90s", "1h30m", "1.5h", "300ms", "1.5µs", "0"), and formats
// durations for people. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace haulout {

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
