// Several hosts that are the same machine, each with its own ways to reboot it: the ways of all, in the order of the
// hosts. Boot id, start and ready file are the first one's; the boot has come to its end when all say so, and who wants
// the machine to stay up for one of them does so for all.
#pragma once

#include <memory>

#include "agent/ports/host.hpp"

namespace haulout::agent {

class JoinedHost final : public Host {
 public:
  // One host at least.
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
