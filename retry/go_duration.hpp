// Durations as Go and kubectl write them: "90s", "1h30m", "1.5h", "300ms", "1.5µs", "0". Pure.
#pragma once

#include <string_view>

#include "retry/clock.hpp"
#include "retry/result.hpp"

namespace haulout {

// Errc::invalid with what is wrong and how to write it: an unknown or a missing unit, no number, or more than the
// clock can hold (292 years). Only zero may stand without a unit. A sign is accepted; the caller decides about it.
Result<Duration> parse_duration(std::string_view text);

}  // namespace haulout
