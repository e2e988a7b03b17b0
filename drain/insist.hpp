// Impl::insist sends a request and repeats it with backoff while its failure may be transient. It stops at the deadline
// of the drain or at `limit`, whichever comes first, and returns the last failure. It sends the request at least once,
// even if that time has passed. Near the end it halves its waits, so that it uses the time that is left. It repeats the
// first 403, because an authorizer that has just started may refuse wrongly, and returns the second one. Each attempt
// may take `timeout`, or until the deadline if `timeout` is unset. If failures continue, it reports them to the
// observer with `what`, a sentence that says what has failed (Trouble). Cancellable.
#pragma once

#include "drain/drain_impl.hpp"
#include "k8s/patience.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {

using k8s::is_about_credentials;
using k8s::may_heal;

template <class T>
Task<T> Drain::Impl::insist(std::string what, std::function<Task<T>(TimePoint)> request,
                            std::optional<Duration> timeout, TimePoint limit) {
  using std::chrono::milliseconds, std::chrono::seconds;
  Backoff backoff({milliseconds(200), 2.0, seconds(10), BackoffOptions::Jitter::full});
  Backoff slow_backoff({seconds(1), 2.0, seconds(60), BackoffOptions::Jitter::equal});
  unsigned refusals = 0;
  Trouble trouble(*this, std::move(what));
  for (;;) {
    auto answer = co_await request(timeout ? within(*timeout) : deadline_);
    const bool cold = !answer && k8s::is_forbidden(answer.error()) && ++refusals < 2;
    if (answer || (!cold && !may_heal(answer.error()))) {
      trouble.over();
      co_return answer;
    }
    const Error& error = answer.error();
    Duration delay = (is_about_credentials(error) ? slow_backoff : backoff).next(rng_, error.retry_after);
    if (cold) delay = std::max<Duration>(delay, milliseconds(500));
    const Duration left = std::min(deadline_, limit) - now();
    if (delay >= left) {
      delay = left / 2;
      if (delay < milliseconds(100)) {
        trouble.over();
        co_return answer;
      }
    }
    trouble.tell(error);
    co_await clock_.sleep_until(now() + delay);
  }
}

}  // namespace haulout::drain
