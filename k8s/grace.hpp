// Converts grace periods of the API, which may be any whole number of seconds. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace haulout::k8s {

// A negative number becomes 0. More than a century becomes a century, so that the result can be added to a point in
// time.
constexpr std::chrono::seconds grace_period(std::int64_t seconds) {
  constexpr std::int64_t century = std::int64_t{100} * 365 * 24 * 3600;
  return std::chrono::seconds(std::clamp(seconds, std::int64_t{0}, century));
}

}  // namespace haulout::k8s
