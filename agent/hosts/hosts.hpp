// Implementations of agent/ports/host.hpp for reboots that need no system bus. agent/dbus/logind.hpp reboots over the
// bus. Errors of the host's files are those of HostRoot.
#pragma once

#include <memory>

#include "agent/hosts/host_command.hpp"
#include "agent/hosts/host_root.hpp"
#include "agent/ports/host.hpp"

namespace haulout::agent {

// The part that all hosts share: boot id, start of the first process and ready file, beneath the host's root.
// boot_complete() always returns true: only a service manager can report that a boot is not complete, and LogindHost
// queries it. blocked_by() names the program that holds a lock of dpkg. A reboot must wait for that program, because
// kernel packages create /run/reboot-required before the boot loader knows the new kernel.
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

// A host that the agent does not reboot (--reboot-method=none): a person or another program reboots it once the node is
// in the state `ready`. It has no reboot method; can_reboot() succeeds, and reboot() fails with Errc::invalid.
class NoneHost final : public FileHost {
 public:
  using FileHost::FileHost;

  std::vector<std::string> reboot_methods() const override { return {}; }
  Task<> can_reboot(TimePoint deadline) override;
  Task<> reboot(std::size_t method, TimePoint deadline) override;
};

// A host that a command reboots (--reboot-method=command with --reboot-command). It has one reboot method. The request
// counts as accepted if the command ends with exit status 0. Any other status, a signal, an exceeded deadline or a
// failed start is an error that names the program and has the end of its stderr.
//
// The clock must outlive the host. At the deadline the command gets SIGTERM, and SIGKILL ten seconds later; if the
// reboot is cancelled, half a second later.
class CommandHost final : public FileHost {
 public:
  CommandHost(HostRoot root, Clock& clock, HostCommand command)
      : FileHost(std::move(root)), clock_(clock), command_(std::move(command)) {}

  std::vector<std::string> reboot_methods() const override;
  // Checks that the program exists and is executable, without running it.
  Task<> can_reboot(TimePoint deadline) override;
  Task<> reboot(std::size_t method, TimePoint deadline) override;

 private:
  Clock& clock_;
  HostCommand command_;
};

// Several hosts that are the same machine, each with its own reboot methods. reboot_methods() returns the methods of
// all hosts, in the order of the hosts. Boot id, start, ready file and can_reboot() are those of the first host. The
// boot is complete if all hosts report so. blocked_by() returns the first non-empty answer. Owns the hosts.
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
