// Exponential backoff with jitter. Computes the delay before the next attempt; does not wait. No I/O, never fails.
//
// A delay is never shorter than `minimum`. If the peer sent Retry-After, the delay is at least that long, up to
// longest_retry_after, and a random extra of up to 20 % keeps the nodes of a fleet from retrying at the same moment.
#pragma once

#include <optional>

#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout {

// The d below is the delay before jitter: `base`, multiplied by `factor` for each earlier call, and at most `cap`.
struct BackoffOptions {
  Duration base = std::chrono::milliseconds(200);
  double factor = 2.0;
  Duration cap = std::chrono::seconds(10);
  // full: uniform in [0, d]; equal: uniform in [d/2, d].
  enum class Jitter { full, equal } jitter = Jitter::full;
};

class Backoff {
 public:
  // The shortest delay. Keeps a caller from retrying in a tight loop when full jitter yields almost 0.
  static constexpr Duration minimum = std::chrono::milliseconds(10);
  // A longer Retry-After is cut to this: a wrong value from a proxy must not stop the client for a day.
  static constexpr Duration longest_retry_after = std::chrono::seconds(300);

  explicit Backoff(BackoffOptions options) : options_(options) {}

  // Returns the delay before the next attempt, and counts that attempt. `retry_after` is the peer's Retry-After.
  Duration next(Rng& rng, std::optional<std::chrono::milliseconds> retry_after = std::nullopt);
  void reset() { attempts_ = 0; }
  unsigned attempts() const { return attempts_; }

 private:
  BackoffOptions options_;
  unsigned attempts_ = 0;
};

}  // namespace haulout
