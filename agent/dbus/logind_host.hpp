// The machine beneath the agent, rebooted over the system bus. Method "logind" honours inhibitors and the kubelet's
// graceful shutdown; method "systemd" does not. Files are read beneath the host's root. All calls are cancellable.
//
// started(): the time that systemd reports. The package's unit cannot see process 1 in /proc (ProtectProc=invisible).
// can_reboot(): Errc::unavailable, with the remedy, if a reboot would be refused or is blocked; otherwise fails as
// Bus::exchange() does.
// blocked_by(): the inhibitors of mode block and their holders. Always empty if logind is not among the methods. The
// agent honours inhibitors of every user. logind before systemd 257 ignores those that root holds.
// reboot(): after Errc::timeout or Errc::reset the machine may already be going down.
// boot_complete(): true if the host does not run systemd. Fails if systemd is in a state from which the boot cannot
// complete.
#pragma once

#include "agent/dbus/bus.hpp"
#include "agent/dbus/logind_answers.hpp"
#include "agent/hosts/file_host.hpp"

namespace haulout::agent {

class LogindHost final : public FileHost {
 public:
  // `methods`: "logind" and "systemd" in order of preference. Borrows `bus`.
  LogindHost(Bus& bus, HostRoot root, std::vector<std::string> methods)
      : FileHost(std::move(root)), bus_(bus), methods_(std::move(methods)) {}

  Task<MachineStart> started(TimePoint deadline) override;
  std::vector<std::string> reboot_methods() const override { return methods_; }
  Task<> can_reboot(TimePoint deadline) override;
  Task<std::string> blocked_by(TimePoint deadline) override;
  Task<> reboot(std::size_t method, TimePoint deadline) override;
  Task<bool> boot_complete(TimePoint deadline) override;

 private:
  Task<> logind_permits(TimePoint deadline);
  Task<> systemd_permits(TimePoint deadline);
  Task<std::vector<Inhibitor>> inhibitors(TimePoint deadline);
  Task<> reboot_by_logind(TimePoint deadline);

  Bus& bus_;
  std::vector<std::string> methods_;
};

}  // namespace haulout::agent
