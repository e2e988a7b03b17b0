#include "retry/clock.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "retry/wake_channel.hpp"

namespace haulout {
namespace asio = boost::asio;

asio::awaitable<void> Clock::sleep_until(TimePoint when) {
  const auto executor = co_await asio::this_coro::executor;
  WakeChannel wake(executor);
  bool rung = false;
  const auto alarm = set_alarm(executor, when, [&] {
    rung = true;
    wake.cancel();
  });
  co_await wake.async_receive(asio::as_tuple(asio::use_awaitable));
  if (!rung) throw boost::system::system_error(asio::error::operation_aborted);
}

}  // namespace haulout
