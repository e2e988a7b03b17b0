// Port: the machine below the agent. Fakes live with the tests and the demo.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// When the first process of a machine began, as one source tells it. Only moments of the same source are compared.
struct MachineStart {
  std::string source{};  // empty: nobody can tell
  std::uint64_t at = 0;
  bool operator==(const MachineStart&) const = default;
};

class Host {
 public:
  virtual ~Host() = default;
  // /proc/sys/kernel/random/boot_id: another one after each boot.
  virtual Result<std::string> boot_id() = 0;
  // Tells two starts of a machine apart that has the boot id of another one, as a container has its host's: then the
  // boot id stays. An error: nobody can tell. Cancellable.
  virtual Task<MachineStart> started(TimePoint deadline) = 0;
  // The ways to reboot, best first, as a person would name them; empty: somebody else reboots this machine.
  virtual std::vector<std::string> reboot_methods() const = 0;
  // Whether the first method would be permitted; asked before anything is cordoned. Cancellable.
  virtual Task<> can_reboot(TimePoint deadline) = 0;
  // Who wants the machine to stay up for now, as a sentence for people; empty: nobody. To be asked again right before
  // the reboot, since that may come hours after can_reboot(). An error: nobody can tell. Cancellable.
  virtual Task<std::string> blocked_by(TimePoint deadline) = 0;
  // Asks for the reboot. Success: it was accepted, and the machine goes down at some moment, perhaps before this
  // returns. Cancellable.
  virtual Task<> reboot(std::size_t method, TimePoint deadline) = 0;
  // Whether the boot has come to its end. Cancellable.
  virtual Task<bool> boot_complete(TimePoint deadline) = 0;
  // /run/haulout/ready exists exactly while `ready` holds. Idempotent.
  virtual Result<> show_ready(bool ready) = 0;
};

}  // namespace haulout::agent
