// The host that nobody here reboots (--reboot-method=none): a person or a machine does, once the node shows itself
// ready. There is no way to reboot, so nothing can forbid it: can_reboot succeeds, reboot is Errc::invalid.
#pragma once

#include "agent/hosts/file_host.hpp"

namespace haulout::agent {

class NoneHost final : public FileHost {
 public:
  using FileHost::FileHost;

  std::vector<std::string> reboot_methods() const override { return {}; }
  Task<> can_reboot(TimePoint deadline) override;
  Task<> reboot(std::size_t method, TimePoint deadline) override;
};

}  // namespace haulout::agent
