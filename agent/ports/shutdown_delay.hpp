// Port: a reboot or power-off that somebody else asked for, seen before the machine goes down, and delayed for as long
// as the machine lets us. Fakes live with the tests.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

#include "retry/clock.hpp"

namespace haulout::agent {

class ShutdownDelay {
 public:
  virtual ~ShutdownDelay() = default;
  // From now on, and again after a shutdown that was called off; `why` is for whoever asks what delays it. Idempotent.
  virtual void hold(std::string why) = 0;
  // No longer, at once: a reboot of our own must not wait for us.
  virtual void release() = 0;
  // The shutdown that is being prepared goes on at once; the next one is delayed again.
  virtual void let_shutdown_proceed() = 0;
  // Whether a shutdown would wait for us now.
  virtual bool held() const = 0;
  // Why not, although it should; empty when all is well.
  virtual const std::string& problem() const = 0;
  // Whether shutdown_at() counts: the machine has been asked, or cannot be. False only for a while after the start.
  virtual bool known() const = 0;
  // While the machine prepares to go down: when it will wait no longer. Now or earlier when it does not wait for us.
  virtual std::optional<TimePoint> shutdown_at() const = 0;
  // Returns when any of the above has changed; may return without cause. One waiter. Cancellable.
  virtual boost::asio::awaitable<void> changed() = 0;
};

}  // namespace haulout::agent
