// What every host has in common: boot id, start of the first process and ready file beneath the host's root. Whether
// the boot has come to its end is the service manager's knowledge; a host that cannot ask it says yes. So is who wants
// the machine to stay up: a host that cannot ask says nobody.
#pragma once

#include "agent/hosts/host_root.hpp"
#include "agent/ports/host.hpp"

namespace haulout::agent {

class FileHost : public Host {
 public:
  explicit FileHost(HostRoot root) : root_(std::move(root)) {}

  Result<std::string> boot_id() override { return read_boot_id(root_); }
  Task<MachineStart> started(TimePoint deadline) override;
  Result<> show_ready(bool ready) override { return agent::show_ready(root_, ready); }
  Task<std::string> blocked_by(TimePoint deadline) override;
  Task<bool> boot_complete(TimePoint deadline) override;

 protected:
  const HostRoot& root() const { return root_; }

 private:
  HostRoot root_;
};

}  // namespace haulout::agent
