// Waits on a watch until a collection differs from what the caller has seen. The watch lives as long as the wait.
#pragma once

#include <boost/asio/this_coro.hpp>
#include <functional>

#include "agent/gates/respite.hpp"
#include "k8s/reflector.hpp"
#include "retry/notifier.hpp"
#include "retry/task_group.hpp"

namespace haulout::agent {

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

// Returns when `differs` returns true. It is called after each change of the view or of its health, once the view is
// synced. If the server refuses the list (for example 403), returns without cause after 30 to 60 seconds. Opens the
// watch only when `respite` allows it, and records there an error that has a Retry-After. Never fails. Cancellable.
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

}  // namespace haulout::agent
