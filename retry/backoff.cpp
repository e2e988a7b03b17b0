#include "retry/backoff.hpp"

#include <algorithm>
#include <cmath>

namespace haulout {

Duration Backoff::next(Rng& rng, std::optional<std::chrono::milliseconds> retry_after) {
  const double grown = static_cast<double>(options_.base.count()) * std::pow(options_.factor, attempts_);
  const double capped = std::min(grown, static_cast<double>(options_.cap.count()));
  if (attempts_ < 64) ++attempts_;
  const Duration ceiling(static_cast<Duration::rep>(capped));
  const Duration floor = options_.jitter == BackoffOptions::Jitter::full ? Duration::zero() : ceiling / 2;
  Duration delay = std::max(minimum, rng.between(floor, ceiling));
  if (retry_after) {
    const Duration asked = std::min<Duration>(*retry_after, longest_retry_after);
    delay = std::max(delay, asked + rng.between(Duration::zero(), asked / 5));
  }
  return delay;
}

}  // namespace haulout
