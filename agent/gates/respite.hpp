// How long a question to the API server rests after it has failed: the longer the more often in a row, and never
// shorter than the server asked for (P10). Who asks a question in two ways, once and by a watch, has one of these for
// both.
#pragma once

#include <algorithm>
#include <optional>

#include "retry/backoff.hpp"

namespace haulout::agent {

class Respite {
 public:
  // Borrowed.
  Respite(Clock& clock, Rng& rng) : clock_(clock), rng_(rng) {}

  void failed(const Error& error) {
    over_ = std::max(over_, clock_.now() + backoff_.next(rng_, error.retry_after));
    refusal_ = error.retry_after ? std::optional(error) : std::nullopt;
  }
  // A watch has a backoff of its own. Only a Retry-After counts here: the next watch must wait for it, too.
  void watch_failed(const Error& error) {
    if (error.retry_after) failed(error);
  }
  void answered() {
    backoff_.reset();
    over_ = {};
    refusal_.reset();
  }
  // No watch is opened before.
  TimePoint over() const { return over_; }
  // The server's answer with a Retry-After that is not over yet. After other failures a caller may ask at once.
  std::optional<Error> refusal() const { return clock_.now() < over_ ? refusal_ : std::nullopt; }

 private:
  Clock& clock_;
  Rng& rng_;
  Backoff backoff_{
      BackoffOptions{std::chrono::milliseconds(500), 2.0, std::chrono::seconds(30), BackoffOptions::Jitter::equal}};
  TimePoint over_{};
  std::optional<Error> refusal_;
};

}  // namespace haulout::agent
