#include "retry/clock.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "retry/gate.hpp"

namespace haulout {
namespace asio = boost::asio;

asio::awaitable<void> Clock::sleep_until(TimePoint when) {
  const auto executor = co_await asio::this_coro::executor;
  Gate gate(executor);
  bool rung = false;
  const auto alarm = set_alarm(executor, when, [&] {
    rung = true;
    gate.cancel();
  });
  co_await gate.async_receive(asio::as_tuple(asio::use_awaitable));
  if (!rung) throw boost::system::system_error(asio::error::operation_aborted);
}

}  // namespace haulout
