#include "retry/real_clock.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace haulout {
namespace asio = boost::asio;

TimePoint RealClock::now() const {
  return std::chrono::steady_clock::now();
}

WallTime RealClock::wall_now() const {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

asio::awaitable<bool> RealClock::doze_until(TimePoint when) {
  asio::steady_timer timer(co_await asio::this_coro::executor, when);
  const auto [cancelled] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return !cancelled;
}

}  // namespace haulout
