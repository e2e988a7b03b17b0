// How often a back end asks again if it gets no notification of changes: by default every ten minutes. The interval
// varies by up to a fifth, so that the nodes of a fleet do not ask at the same time. Pure apart from `clock` and `rng`.
#pragma once

#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

inline constexpr Duration recheck_interval = std::chrono::minutes(10);

inline TimePoint next_recheck(const Clock& clock, Rng& rng, Duration interval = recheck_interval) {
  return clock.now() + rng.between(interval * 4 / 5, interval * 6 / 5);
}

}  // namespace haulout::agent
