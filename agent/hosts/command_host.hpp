// A host that a command reboots (--reboot-method=command with --reboot-command). It has one reboot method. The request
// counts as accepted if the command ends with exit status 0. Any other status, a signal, a passed deadline or a failed
// start is an error that names the program and has the end of its stderr.
//
// The clock must outlive the host. At the deadline the command gets SIGTERM, and SIGKILL ten seconds later; if the
// reboot is cancelled, half a second later.
#pragma once

#include "agent/hosts/file_host.hpp"
#include "agent/hosts/host_command.hpp"

namespace haulout::agent {

class CommandHost final : public FileHost {
 public:
  CommandHost(HostRoot root, Clock& clock, HostCommand command)
      : FileHost(std::move(root)), clock_(clock), command_(std::move(command)) {}

  std::vector<std::string> reboot_methods() const override;
  // Checks whether the program exists and is executable, without running it.
  Task<> can_reboot(TimePoint deadline) override;
  Task<> reboot(std::size_t method, TimePoint deadline) override;

 private:
  Clock& clock_;
  HostCommand command_;
};

}  // namespace haulout::agent
