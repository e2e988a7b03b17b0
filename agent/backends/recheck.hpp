// How often a back end asks again where nothing tells it to: ten minutes unless told otherwise, give or take a fifth so
// that a fleet that was started together does not ask together. Clock and Rng must outlive the wait.
#pragma once

#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

inline constexpr Duration recheck_interval = std::chrono::minutes(10);

inline TimePoint next_recheck(const Clock& clock, Rng& rng, Duration interval = recheck_interval) {
  return clock.now() + rng.between(interval * 4 / 5, interval * 6 / 5);
}

}  // namespace haulout::agent
