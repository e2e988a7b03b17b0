#include "agent/dbus/logind_answers.hpp"

#include <fmt/format.h>

#include "agent/dbus/bus_error.hpp"

namespace haulout::agent {
namespace {

constexpr std::string_view other_methods = "choose another --reboot-method (systemd, command or none)";

Error cannot_reboot(const std::string& why) {
  return Error(Errc::unavailable, "logind would not reboot this machine: " + why);
}

}  // namespace

Result<> judge_can_reboot(std::string_view answer, std::uint32_t uid) {
  if (answer == "yes" || answer.ends_with("inhibitor-blocked")) return {};
  const std::string rights = fmt::format(
      "logind sees this process as uid {}; run it as uid 0 of the host, or allow it org.freedesktop.login1.reboot and "
      "org.freedesktop.login1.reboot-multiple-sessions with a polkit rule",
      uid);
  if (answer == "challenge") return cannot_reboot("it requires a password (CanReboot: challenge); " + rights);
  if (answer == "no") return cannot_reboot("it is not permitted (CanReboot: no); " + rights);
  if (answer == "na")
    return cannot_reboot(fmt::format("it does not support reboots (CanReboot: na); {}", other_methods));
  return cannot_reboot(fmt::format("CanReboot answered \"{}\"; {}", answer, other_methods));
}

bool names_shutdown(std::string_view what) {
  while (!what.empty()) {
    const std::size_t end = std::min(what.find(':'), what.size());
    if (what.substr(0, end) == "shutdown") return true;
    what.remove_prefix(std::min(end + 1, what.size()));
  }
  return false;
}

Result<> judge_inhibitors(const std::vector<Inhibitor>& inhibitors) {
  std::string blockers;
  for (const Inhibitor& inhibitor : inhibitors) {
    if (!inhibitor.mode.starts_with("block") || !names_shutdown(inhibitor.what)) continue;
    blockers += fmt::format("{}{} (pid {}, uid {}): {}", blockers.empty() ? "" : "; ", inhibitor.who, inhibitor.pid,
                            inhibitor.uid, inhibitor.why);
  }
  if (blockers.empty()) return {};
  return Error(
      Errc::unavailable,
      fmt::format("a reboot is blocked by {}; wait until it ends, or end it (systemd-inhibit --list)", blockers));
}

Result<bool> judge_system_state(std::string_view state) {
  if (state == "running" || state == "degraded") return true;
  if (state == "initializing" || state == "starting") return false;
  return Error(Errc::unavailable, fmt::format("the boot has not finished: systemd reports \"{}\", expected running or "
                                              "degraded; see systemctl status on the machine",
                                              state));
}

Error explain_refusal(std::string_view service, Error refusal) {
  if (is_bus_error(refusal, bus_error::access_denied) || is_bus_error(refusal, bus_error::interactive_authorization))
    return Error(Errc::unavailable, fmt::format("{}; {}", refusal.message(), container_traps()));
  if (is_absent(refusal))
    return Error(Errc::unavailable,
                 fmt::format("{}; {} is not on this bus: {}", refusal.message(), service, other_methods));
  return refusal;
}

}  // namespace haulout::agent
