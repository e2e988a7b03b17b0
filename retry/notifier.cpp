#include "retry/notifier.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace haulout {
namespace asio = boost::asio;

Notifier::Notifier(asio::any_io_executor executor) : gate_(executor, TimePoint::max()) {}

void Notifier::notify() {
  raised_ = true;
  gate_.cancel();
}

asio::awaitable<void> Notifier::wait() {
  if (!raised_) co_await gate_.async_wait(asio::as_tuple(asio::use_awaitable));
}

asio::awaitable<bool> Notifier::wait_until(Clock& clock, TimePoint until) {
  if (!raised_) {
    auto executor = co_await asio::this_coro::executor;
    co_await asio::experimental::make_parallel_group(asio::co_spawn(executor, wait(), asio::deferred),
                                                     asio::co_spawn(executor, clock.doze_until(until), asio::deferred))
        .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
    // A cancelled caller unwinds here: the group itself reports only how its members ended.
    auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none)
      throw boost::system::system_error(asio::error::operation_aborted);
  }
  co_return std::exchange(raised_, false);
}

}  // namespace haulout
