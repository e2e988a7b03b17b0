// Several hosts that are the same machine, each with its own reboot methods. reboot_methods() lists the methods of all,
// in the order of the hosts. Boot id, start, ready file and can_reboot() are those of the first host. The boot is
// complete if all hosts report so. blocked_by() returns the first non-empty answer. Owns the hosts.
#pragma once

#include <memory>

#include "agent/ports/host.hpp"

namespace haulout::agent {

class JoinedHost final : public Host {
 public:
  // Precondition: at least one host.
  explicit JoinedHost(std::vector<std::unique_ptr<Host>> hosts) : hosts_(std::move(hosts)) {}

  Result<std::string> boot_id() override;
  Task<MachineStart> started(TimePoint deadline) override;
  std::vector<std::string> reboot_methods() const override;
  Task<> can_reboot(TimePoint deadline) override;
  Task<std::string> blocked_by(TimePoint deadline) override;
  Task<> reboot(std::size_t method, TimePoint deadline) override;
  Task<bool> boot_complete(TimePoint deadline) override;
  Result<> show_ready(bool ready) override;

 private:
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace haulout::agent
