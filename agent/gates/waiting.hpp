// Helpers with which the gates wait: for a change that a watch shows, for a time, and after failures of the API server.
#pragma once

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <functional>
#include <optional>
#include <type_traits>
#include <vector>

#include "k8s/client.hpp"
#include "k8s/reflector.hpp"
#include "retry/backoff.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"
#include "retry/task.hpp"
#include "retry/task_group.hpp"

namespace haulout::agent {

// Backoff after failures of a request to the API server. It grows with each failure in a row, and is at least as long
// as the server's Retry-After (of which at most Backoff::longest_retry_after counts). A caller that sends both single
// requests and a watch for the same objects uses one Respite for both.
class Respite {
 public:
  // Borrows clock and rng.
  Respite(Clock& clock, Rng& rng) : clock_(clock), rng_(rng) {}

  // Sends the request by calling `question` (returns Task<T>) and returns its result. If the last failure had a
  // Retry-After, returns that failure until over() without sending a request. Does not delay the request after other
  // failures: their backoff is only for watches. Cancellable.
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
  // Records the failure of a watch. Only an error with a Retry-After counts: the next watch must wait for it, too. For
  // other errors the watch has its own backoff.
  void watch_failed(const Error& error) {
    if (error.retry_after) failed(error);
  }
  // Returns the end of the backoff. The caller must not open a watch before this time.
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

// until_differs() waits on a watch until a collection differs from what the caller has seen. The watch exists only
// during the wait.

namespace detail {

template <class T>
boost::asio::awaitable<void> follow(k8s::Reflector<T>& view, bool& refused, Notifier& moved) {
  static_cast<void>(co_await view.run());
  refused = true;
  moved.notify();
}

inline boost::asio::awaitable<void> wait_until_true(Clock& clock, Notifier& moved, std::function<bool()> done) {
  while (!done()) co_await moved.wait_until(clock, TimePoint::max());
}

}  // namespace detail

// Returns when `differs` returns true. Calls `differs` after each change of the view or of its health, once the view is
// synced. If the server refuses the list (for example 403), returns without cause after 30 to 60 seconds. Opens the
// watch only when `respite` allows it, and records errors with a Retry-After in `respite`. Never fails. Cancellable.
// Borrows client, rng and respite.
template <class T>
boost::asio::awaitable<void> until_differs(k8s::Client& client, Rng& rng, Respite& respite,
                                           k8s::ReflectorOptions options,
                                           std::function<bool(const k8s::Reflector<T>&)> differs) {
  Notifier moved(co_await boost::asio::this_coro::executor);
  bool refused = false;
  co_await client.clock().sleep_until(respite.over());
  k8s::Reflector<T> view(
      client, rng, std::move(options), [](const std::string&, const T*) {},
      [&] {
        if (view.health().error) respite.watch_failed(*view.health().error);
        moved.notify();
      });
  const std::function<bool()> done = [&] { return refused || (view.health().synced && differs(view)); };
  co_await with_task_group([&](TaskGroup& group) {
    group.spawn(detail::follow(view, refused, moved));
    return detail::wait_until_true(client.clock(), moved, done);
  });
  if (!refused) co_return;
  const Duration rest = rng.between(std::chrono::seconds(30), std::chrono::seconds(60));
  co_await client.clock().sleep_until(client.clock().now() + rest);
}

// Small helpers for waiting that the gates share.

// Returns the time at which to evaluate a gate again that could not be evaluated: in 20 to 40 seconds, by this
// machine's clock.
inline WallTime soon(const Clock& clock, Rng& rng) {
  return clock.wall_now() + std::chrono::duration_cast<WallTime::duration>(
                                rng.between(std::chrono::seconds(20), std::chrono::seconds(40)));
}

// Converts a time of the API server's clock to this machine's clock.
inline std::optional<WallTime> by_own_clock(k8s::Client& client, std::optional<WallTime> by_servers) {
  if (!by_servers) return std::nullopt;
  return *by_servers + (client.clock().wall_now() - client.server_now());
}

namespace detail {

inline boost::asio::awaitable<void> then_notify(boost::asio::awaitable<void> wait, Notifier& over) {
  co_await std::move(wait);
  over.notify();
}

inline boost::asio::awaitable<void> notified(Clock& clock, Notifier& over) {
  co_await over.wait_until(clock, TimePoint::max());
}

}  // namespace detail

// Returns when the first of `waits` returns, and cancels the others. Never returns if `waits` is empty. Cancellable.
inline boost::asio::awaitable<void> first_of(Clock& clock, std::vector<boost::asio::awaitable<void>> waits) {
  Notifier over(co_await boost::asio::this_coro::executor);
  co_await with_task_group([&](TaskGroup& group) {
    for (auto& wait : waits) group.spawn(detail::then_notify(std::move(wait), over));
    return detail::notified(clock, over);
  });
}

}  // namespace haulout::agent
