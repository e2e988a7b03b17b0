// How often a back end asks again where nothing tells it to: ten minutes, give or take a fifth so that a fleet that was
// started together does not ask together. Clock and Rng must outlive the wait.
#pragma once

#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

inline constexpr Duration recheck_interval = std::chrono::minutes(10);

inline TimePoint next_recheck(const Clock& clock, Rng& rng) {
  return clock.now() + rng.between(recheck_interval * 4 / 5, recheck_interval * 6 / 5);
}

}  // namespace haulout::agent
