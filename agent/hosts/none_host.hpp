// A host that the agent does not reboot (--reboot-method=none): a person or another program reboots it once the node is
// in the state `ready`. It has no reboot method, so can_reboot() succeeds and reboot() is Errc::invalid.
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
