// Time as a dependency: nothing in this tree reads the real clock but RealClock, so that everything can be tested in
// virtual time. Monotonic time measures and waits; wall time is shown to people and written into objects.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>

#include "base/time.hpp"

namespace haulout {

// Something that rings once, unless it is destroyed before.
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
  // Calls `ring` from the executor at `when` or, if that has passed, as soon as the executor gets to it; never in
  // place, and never once the Alarm is destroyed. TimePoint::max() never comes. The cheap way to bound a wait:
  // deadlines are dropped a thousand times more often than they are reached.
  virtual std::unique_ptr<Alarm> set_alarm(boost::asio::any_io_executor executor, TimePoint when,
                                           std::function<void()> ring) = 0;
  // Returns at `when`; unwinds when cancelled. Leaves no timer behind. TimePoint::max() waits until cancelled.
  boost::asio::awaitable<void> sleep_until(TimePoint when);
};

}  // namespace haulout
