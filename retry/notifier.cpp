#include "retry/notifier.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace haulout {
namespace asio = boost::asio;

Notifier::Notifier(asio::any_io_executor executor) : wake_(executor) {}

void Notifier::notify() {
  raised_ = true;
  wake_.cancel();
}

asio::awaitable<bool> Notifier::wait_until(Clock& clock, TimePoint until) {
  if (!raised_) {
    const auto executor = co_await asio::this_coro::executor;
    const auto alarm = clock.set_alarm(executor, until, [this] { wake_.cancel(); });
    co_await wake_.async_receive(asio::as_tuple(asio::use_awaitable));
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none)
      throw boost::system::system_error(asio::error::operation_aborted);
  }
  co_return std::exchange(raised_, false);
}

}  // namespace haulout
