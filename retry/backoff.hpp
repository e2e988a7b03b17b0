// Exponential backoff with jitter. Pure arithmetic: returns how long to wait, never waits.
//
// No delay is ever zero. None is shorter than what the peer asked for with Retry-After, up to longest_retry_after. A
// wait that honours Retry-After is stretched by up to 20 %, so that a fleet does not return in step.
#pragma once

#include <optional>

#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout {

struct BackoffOptions {
  Duration base = std::chrono::milliseconds(200);
  double factor = 2.0;
  Duration cap = std::chrono::seconds(10);
  // full: uniform in [0, d]; equal: d/2 + uniform in [0, d/2].
  enum class Jitter { full, equal } jitter = Jitter::full;
};

class Backoff {
 public:
  static constexpr Duration minimum = std::chrono::milliseconds(10);
  // Longer requests of a peer are cut to this (a proxy's nonsense must not stop us for a day).
  static constexpr Duration longest_retry_after = std::chrono::seconds(300);

  explicit Backoff(BackoffOptions options) : options_(options) {}

  Duration next(Rng& rng, std::optional<std::chrono::milliseconds> retry_after = std::nullopt);
  void reset() { attempts_ = 0; }
  unsigned attempts() const { return attempts_; }

 private:
  BackoffOptions options_;
  unsigned attempts_ = 0;
};

}  // namespace haulout
