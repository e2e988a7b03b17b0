// Backoff for a request to the API server after failures. The pause grows with each failure in a row and is never
// shorter than the server's Retry-After, up to Backoff::longest_retry_after. A caller that makes the same request once
// and as a watch shares one Respite for both.
#pragma once

#include <algorithm>
#include <optional>
#include <type_traits>

#include "retry/backoff.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

class Respite {
 public:
  // Borrows clock and rng.
  Respite(Clock& clock, Rng& rng) : clock_(clock), rng_(rng) {}

  // Calls `question`, a callable that returns Task<T>, and returns its result. While the Retry-After of the last
  // response is not over, it returns that error again without a request. After other failures it does not wait.
  // Cancellable.
  template <class Question>
  std::invoke_result_t<Question&> ask(Question question) {
    if (refusal_ && clock_.now() < over_) co_return *refusal_;
    auto answer = co_await question();
    if (answer)
      answered();
    else
      failed(answer.error());
    co_return answer;
  }
  // Records the failure of a watch. Only an error with a Retry-After counts, because the next watch must wait for it,
  // too. For other errors a watch has its own backoff.
  void watch_failed(const Error& error) {
    if (error.retry_after) failed(error);
  }
  // The caller must not open a watch before this time.
  TimePoint over() const { return over_; }

 private:
  void failed(const Error& error) {
    over_ = std::max(over_, clock_.now() + backoff_.next(rng_, error.retry_after));
    refusal_ = error.retry_after ? std::optional(error) : std::nullopt;
  }
  void answered() {
    backoff_.reset();
    over_ = {};
    refusal_.reset();
  }

  Clock& clock_;
  Rng& rng_;
  Backoff backoff_{
      BackoffOptions{std::chrono::milliseconds(500), 2.0, std::chrono::seconds(30), BackoffOptions::Jitter::equal}};
  TimePoint over_{};
  std::optional<Error> refusal_;  // the last error, if it had a Retry-After
};

}  // namespace haulout::agent
