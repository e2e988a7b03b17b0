// Small helpers for waiting that the gates share.
#pragma once

#include <boost/asio/this_coro.hpp>
#include <functional>
#include <optional>
#include <vector>

#include "k8s/client.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"
#include "retry/task_group.hpp"

namespace haulout::agent {

// When to evaluate a gate again that could not be evaluated: in 20 to 40 seconds, by the own clock.
inline WallTime soon(const Clock& clock, Rng& rng) {
  return clock.wall_now() + std::chrono::duration_cast<WallTime::duration>(
                                rng.between(std::chrono::seconds(20), std::chrono::seconds(40)));
}

// Converts a time of the API server's clock to the own clock.
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
