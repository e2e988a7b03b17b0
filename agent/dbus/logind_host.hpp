// A host that the agent reboots over the system bus, and the interpretation of the answers of logind and systemd.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/dbus/bus.hpp"
#include "agent/hosts/hosts.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// These functions interpret the answers of logind and systemd. Pure. Sources: org.freedesktop.login1(5),
// org.freedesktop.systemd1(5).

// One row of ListInhibitors.
struct Inhibitor {
  std::string what;  // for example "shutdown:sleep"
  std::string who;
  std::string why;
  std::string mode;  // block, block-weak, delay
  std::uint32_t uid = 0;
  std::uint32_t pid = 0;
};

// Succeeds for "yes", and for an answer that reports only inhibitors, which judge_inhibitors() checks separately. `uid`
// is the agent's user id on the bus.
Result<> judge_can_reboot(std::string_view answer, std::uint32_t uid);

// Returns true if a colon-separated list, as in the property BlockInhibited, contains "shutdown".
bool names_shutdown(std::string_view what);

// Succeeds if no inhibitor blocks a shutdown. Otherwise fails with an error that names each inhibitor's holder and its
// reason.
Result<> judge_inhibitors(const std::vector<Inhibitor>& inhibitors);

// Interprets Manager.SystemState. Returns true if the boot is complete, false if it is still in progress. Fails for a
// state from which the boot cannot complete.
Result<bool> judge_system_state(std::string_view state);

// Returns the error of a refused call to `service` that would reboot the machine, with an explanation and with hints
// about containers or other reboot methods.
Error explain_refusal(std::string_view service, Error refusal);

// A machine that the agent reboots over the system bus. The method "logind" honours inhibitors and the kubelet's
// graceful shutdown; the method "systemd" does not. Files are read beneath the host's root. All calls are cancellable.
//
// started() returns the time that systemd reports, because the package's unit cannot see process 1 in /proc
// (ProtectProc=invisible). can_reboot() fails with Errc::unavailable, with the remedy, if a reboot would be refused or
// is blocked; otherwise as Bus::exchange() does. blocked_by() returns the inhibitors of mode block and their holders;
// always empty if logind is not among the methods. The agent honours inhibitors of every user; logind before systemd
// 257 ignores those that root holds. After Errc::timeout or Errc::reset from reboot() the machine may already be going
// down. boot_complete() returns true if the host does not run systemd, and fails if systemd is in a state from which
// the boot cannot complete.
class LogindHost final : public FileHost {
 public:
  // `methods` are "logind" and "systemd" in order of preference. Borrows `bus`.
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
