// A level-triggered wake-up for one waiting coroutine: "something changed, look again". Any number of notify() calls
// before the waiter runs are one wake-up, and none is lost. One thread; must outlive its waiter.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "retry/clock.hpp"

namespace haulout {

class Notifier {
 public:
  explicit Notifier(boost::asio::any_io_executor executor);

  // Never blocks, never resumes the waiter in place.
  void notify();
  // Returns true when notified (clearing the flag), false at `until`. Cancellable.
  boost::asio::awaitable<bool> wait_until(Clock& clock, TimePoint until);

 private:
  boost::asio::steady_timer gate_;  // never expires by itself; cancelled to wake the waiter
  bool raised_ = false;
};

}  // namespace haulout
