// The machine below the agent, rebooted over the system bus: by logind ("logind"), which honours inhibitors and the
// kubelet's graceful shutdown, or by systemd itself ("systemd"), which does not. Files are read beneath the host's
// root.
//
// started: as systemd tells; the unit of the package cannot see process 1 in /proc (ProtectProc=invisible).
// can_reboot: Errc::unavailable with what to do when it would be refused or is blocked; else as Bus::exchange.
// blocked_by: whose inhibitors of mode block there are; nobody's where logind is none of the ways. They are honoured
// whoever holds them, which logind itself does not do for those of root before systemd 257.
// reboot: a failure with Errc::timeout or Errc::reset may come from a machine that is already going down.
// boot_complete: true where no systemd runs. An error when systemd is in a state that does not become complete.
#pragma once

#include "agent/dbus/bus.hpp"
#include "agent/dbus/logind_answers.hpp"
#include "agent/hosts/file_host.hpp"

namespace haulout::agent {

class LogindHost final : public FileHost {
 public:
  // `methods`: "logind" and "systemd" in the order of preference. The bus outlives the host.
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
