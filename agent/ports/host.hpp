// Port: the machine on which the agent runs. Tests and the demo have fakes.
#pragma once

#include <cstdint>
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
  // itself.
  virtual std::vector<std::string> reboot_methods() const = 0;
  // Fails if the machine would not permit the first method. The agent calls this before it cordons the node.
  // Cancellable.
  virtual Task<> can_reboot(TimePoint deadline) = 0;
  // Returns a sentence that names what blocks a reboot for now, or an empty string if nothing does. The agent calls it
  // again right before the reboot, which may be hours after can_reboot(). An error means that the answer is unknown.
  // Cancellable.
  virtual Task<std::string> blocked_by(TimePoint deadline) = 0;
  // Requests the reboot; `method` is an index into reboot_methods(). On success the machine has accepted the request.
  // It goes down at some later time, perhaps before this returns. Cancellable.
  virtual Task<> reboot(std::size_t method, TimePoint deadline) = 0;
  // Returns true if the machine has finished booting. Cancellable.
  virtual Task<bool> boot_complete(TimePoint deadline) = 0;
  // Creates /run/haulout/ready if `ready` is true, and removes it otherwise. Idempotent.
  virtual Result<> show_ready(bool ready) = 0;
};

}  // namespace haulout::agent
