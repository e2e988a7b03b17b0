// Wakes one waiting coroutine when something has changed. Several calls of notify() before the coroutine runs wake it
// once. A call while no coroutine waits makes the next wait return at once. One thread; must outlive the waiting
// coroutine.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "retry/clock.hpp"
#include "retry/wake_channel.hpp"

namespace haulout {

class Notifier {
 public:
  explicit Notifier(boost::asio::any_io_executor executor);

  // Returns at once; the waiting coroutine resumes later, from the executor.
  void notify();
  // Returns true when notify() is called or was called since the last return, and false at `until`. Cancellable.
  boost::asio::awaitable<bool> wait_until(Clock& clock, TimePoint until);

 private:
  WakeChannel wake_;
  bool raised_ = false;
};

}  // namespace haulout
