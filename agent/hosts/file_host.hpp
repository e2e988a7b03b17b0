// The part that all hosts share: boot id, start of the first process and ready file, beneath the host's root. Only a
// service manager can report whether the boot is complete; boot_complete() returns true for hosts without one. Likewise
// blocked_by() returns an empty text for hosts that cannot ask whether something inhibits the reboot.
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
