// How long a question to the API server rests after it has failed: the longer the more often in a row, and never
// shorter than the server asked for (P10). Who asks a question in two ways, once and by a watch, has one of these for
// both.
#pragma once

#include <algorithm>
#include <optional>
#include <type_traits>

#include "retry/backoff.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

class Respite {
 public:
  // Borrowed.
  Respite(Clock& clock, Rng& rng) : clock_(clock), rng_(rng) {}

  // The answer to `question`, a callable that returns Task<T>, asked now; or the server's last answer again, without
  // asking, while its Retry-After is not over. After other failures it is asked at once. Cancellable.
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
  // A watch has a backoff of its own. Only a Retry-After counts here: the next watch must wait for it, too.
  void watch_failed(const Error& error) {
    if (error.retry_after) failed(error);
  }
  // No watch is opened before.
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
  std::optional<Error> refusal_;  // the last answer, when it came with a Retry-After
};

}  // namespace haulout::agent
