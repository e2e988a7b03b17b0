// Port: detects a reboot or power-off that the agent did not request, before the machine goes down, and delays it for
// as long as the machine permits. Tests have fakes.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

#include "retry/clock.hpp"

namespace haulout::agent {

class ShutdownDelay {
 public:
  virtual ~ShutdownDelay() = default;
  // Delays every shutdown from now on, also after a shutdown that was cancelled. `why` is the reason that the machine
  // shows to people. Idempotent.
  virtual void hold(std::string why) = 0;
  // Stops delaying shutdowns at once. The agent calls it before its own reboot, which must not be delayed.
  virtual void release() = 0;
  // Lets the shutdown that is in progress continue at once. The next shutdown is delayed again.
  virtual void let_shutdown_proceed() = 0;
  // Returns true if a shutdown would be delayed now.
  virtual bool held() const = 0;
  // Returns why shutdowns are not delayed although hold() was called; empty if there is no problem.
  virtual const std::string& problem() const = 0;
  // Returns true once the machine has answered or has proved to be unreachable; only then is shutdown_at() meaningful.
  // False only for a while after the start.
  virtual bool known() const = 0;
  // Returns the end of the delay while the machine prepares to go down: now or earlier if the shutdown is not delayed.
  // Returns nothing if no shutdown is in progress.
  virtual std::optional<TimePoint> shutdown_at() const = 0;
  // Returns when any of these values has changed; may also return without cause. One waiter. Cancellable.
  virtual boost::asio::awaitable<void> changed() = 0;
};

}  // namespace haulout::agent
