#include "sim/play.hpp"

#include <boost/asio/co_spawn.hpp>
#include <exception>

namespace haulout::sim {

Result<> play(boost::asio::io_context& context, VirtualClock& clock, boost::asio::awaitable<void> coroutine) {
  std::exception_ptr failure;
  bool ended = false;
  boost::asio::co_spawn(context, std::move(coroutine), [&](std::exception_ptr thrown) {
    ended = true;
    failure = thrown;
  });
  const auto stop = clock.run();
  if (failure) std::rethrow_exception(failure);
  if (ended) return {};
  return Error(Errc::invalid, stop == VirtualClock::Stop::idle ? "it waits for something that never comes"
                                                               : "it moves on without end");
}

}  // namespace haulout::sim
