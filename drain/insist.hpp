// Impl::insist: one request, repeated while its failure is transient, until the deadline of the drain: what is left of
// the time is used, in ever shorter waits; or until `limit`, and then at least once. A refusal by an authorizer is
// believed the second time.
#pragma once

#include "drain/drain_impl.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {

template <class T>
Task<T> Drain::Impl::insist(std::function<Task<T>(TimePoint)> request, Duration timeout, TimePoint limit) {
  Backoff backoff({std::chrono::milliseconds(200), 2.0, std::chrono::seconds(10), BackoffOptions::Jitter::full});
  unsigned refusals = 0;
  for (;;) {
    auto answer = co_await request(within(timeout));
    if (answer) co_return answer;
    const Error& error = answer.error();
    const bool cold = k8s::is_forbidden(error) && ++refusals < 2;
    if (!cold && !k8s::is_transient(error)) co_return answer;
    Duration delay = backoff.next(rng_, error.retry_after);
    if (cold) delay = std::max<Duration>(delay, std::chrono::milliseconds(500));
    const Duration left = std::min(deadline_, limit) - now();
    if (delay >= left) {
      delay = left / 2;
      if (delay < std::chrono::milliseconds(100)) co_return answer;
    }
    co_await clock_.sleep_until(now() + delay);
  }
}

}  // namespace haulout::drain
