// The interface of clocks. Only RealClock reads the clocks of the machine, so tests can run all other code in virtual
// time. Use monotonic time to measure and to wait, and wall time for what people read and for API objects.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>

#include "base/duration.hpp"

namespace haulout {

// A callback that a clock calls once at a given time. Destroying the Alarm cancels it.
class Alarm {
 public:
  Alarm() = default;
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  virtual ~Alarm() = default;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  virtual WallTime wall_now() const = 0;
  // Calls `ring` on the executor at `when`; if that time has passed, as soon as the executor is free. Never calls it
  // before set_alarm() returns, after the Alarm was destroyed, or for TimePoint::max(). Setting and cancelling an alarm
  // is cheap, because almost all deadlines are cancelled before they are reached. The caller owns the Alarm.
  virtual std::unique_ptr<Alarm> set_alarm(boost::asio::any_io_executor executor, TimePoint when,
                                           std::function<void()> ring) = 0;
  // Returns at `when`. TimePoint::max() waits until it is cancelled. Cancellable; leaves no timer behind.
  boost::asio::awaitable<void> sleep_until(TimePoint when);
};

}  // namespace haulout
