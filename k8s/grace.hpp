// Grace periods as the API has them: any whole number of seconds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace haulout::k8s {

// Below zero is none; longer than a century is a century, which can be added to a point in time.
constexpr std::chrono::seconds grace_period(std::int64_t seconds) {
  constexpr std::int64_t century = std::int64_t{100} * 365 * 24 * 3600;
  return std::chrono::seconds(std::clamp(seconds, std::int64_t{0}, century));
}

}  // namespace haulout::k8s
