// Durations as Go and kubectl write them ("90s", "1h30m", "1.5h", "300ms", "1.5µs", "0"), and as people read them.
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace haulout {

// Errc::invalid with what is wrong and how to write it: an unknown or a missing unit, no number, or more than the
// clock can hold (292 years). Only zero may stand without a unit. A sign is accepted; the caller decides about it.
Result<Duration> parse_duration(std::string_view text);

// For people, two units at most: "850ms", "42s", "3m05s", "2h07m", "30d00h".
std::string format_duration(Duration duration);
// The same, rounded to whole seconds.
std::string format_whole_seconds(Duration duration);

}  // namespace haulout
