// Ports: the machine on which the agent runs, and the delay of its shutdowns. Implemented in agent/hosts and
// agent/dbus; rehearse/, the demo and the tests have simulated machines. Errors name the cause and, if known, the
// remedy; their Errc depends on the implementation, except in reboot(). The agent borrows both objects.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// When the first process (PID 1) of the machine started, as one source reports it. Values of different sources must not
// be compared.
struct MachineStart {
  std::string source{};  // empty if no source is available
  std::uint64_t at = 0;
  bool operator==(const MachineStart&) const = default;
};

class Host {
 public:
  virtual ~Host() = default;
  // Reads /proc/sys/kernel/random/boot_id, which changes at each boot.
  virtual Result<std::string> boot_id() = 0;
  // Returns when the machine's first process started. This distinguishes two boots of a machine whose boot id stays the
  // same, for example a container, which has the boot id of its host. Fails if no source can answer. Cancellable.
  virtual Task<MachineStart> started(TimePoint deadline) = 0;
  // Returns the names of the reboot methods for messages, best first. Empty if the agent does not reboot this machine
  // itself. A name may say what the method would do now, and after reboot() what it did; the number and the order of
  // the methods stay.
  virtual std::vector<std::string> reboot_methods() const = 0;
  // Fails if the machine would not permit a reboot by the first method. The agent calls this before it cordons the
  // node. Cancellable.
  virtual Task<> can_reboot(TimePoint deadline) = 0;
  // Returns a sentence that names what blocks a reboot for now, or an empty string if nothing does. The agent calls it
  // again right before the reboot, which may be hours after can_reboot(). An error means that the answer is unknown;
  // then the agent tries the reboot nevertheless. Cancellable.
  virtual Task<std::string> blocked_by(TimePoint deadline) = 0;
  // Requests the reboot; `method` is an index into reboot_methods(). On success the machine has accepted the request.
  // Errc::timeout and Errc::reset mean that it may have accepted it nevertheless, any other error that it has not. The
  // machine may go down at any time from the request on, even before this function returns. Cancellable.
  virtual Task<> reboot(std::size_t method, TimePoint deadline) = 0;
  // Returns true if the machine has finished booting. Cancellable.
  virtual Task<bool> boot_complete(TimePoint deadline) = 0;
  // Creates /run/haulout/ready if `ready` is true, and removes it otherwise. Idempotent.
  virtual Result<> show_ready(bool ready) = 0;
};

// Detects a reboot or power-off that the agent did not request, before the machine goes down, and delays it for as long
// as the machine permits.
class ShutdownDelay {
 public:
  virtual ~ShutdownDelay() = default;
  // From now on tries to delay every shutdown until release(), also those that follow a cancelled shutdown; held()
  // returns true once the machine has agreed. `why` is the reason that the machine shows to people. Idempotent.
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
  // Returns when the delay ends, if a shutdown is in progress: now or earlier if that shutdown is not delayed. Returns
  // nothing if no shutdown is in progress.
  virtual std::optional<TimePoint> shutdown_at() const = 0;
  // Returns when any of these values has changed; may also return without cause. One waiter. Cancellable.
  virtual boost::asio::awaitable<void> changed() = 0;
};

}  // namespace haulout::agent
