#include "agent/hosts/hosts.hpp"

#include <fmt/format.h>

#include "agent/hosts/system_files.hpp"

namespace haulout::agent {

Task<std::string> FileHost::blocked_by(TimePoint) {
  CO_TRY(const std::string holder, dpkg_locked_by(root_));
  co_return holder.empty() ? holder : holder + ", so a reboot now could leave packages installed in part";
}

Task<MachineStart> FileHost::started(TimePoint) {
  CO_TRY(const std::uint64_t ticks, read_first_process(root_));
  co_return MachineStart{"/proc/1/stat", ticks};
}

Task<bool> FileHost::boot_complete(TimePoint) {
  co_return true;
}

Task<> NoneHost::can_reboot(TimePoint) {
  co_return Result<>();
}

Task<> NoneHost::reboot(std::size_t, TimePoint) {
  co_return Error(Errc::invalid, "with --reboot-method=none another program or a person reboots this machine");
}

namespace {

// Time that the reboot command has at its deadline between SIGTERM and SIGKILL, because it may do something that must
// not be interrupted, such as updating firmware or stopping a database. If the agent itself is stopped, the command has
// half a second (k8s/child_process.hpp).
constexpr Duration grace = std::chrono::seconds(10);

}  // namespace

std::vector<std::string> CommandHost::reboot_methods() const {
  return {"command " + command_.program};
}

Task<> CommandHost::can_reboot(TimePoint) {
  auto found = find_program(command_.program, program_search_path());
  if (found) co_return Result<>();
  co_return std::move(found).error().with_context("--reboot-command " + command_.program);
}

Task<> CommandHost::reboot(std::size_t method, TimePoint deadline) {
  if (method != 0)
    co_return Error(Errc::invalid, "bug in Haulout: another reboot method than the reboot command was requested");
  const std::string who = "reboot command " + command_.program;
  HostCommand command = command_;
  command.grace = grace;
  command.repeatable = false;  // it would reboot the machine
  auto outcome = co_await run_host_command(clock_, std::move(command), deadline);
  if (!outcome) co_return Error(outcome.error().code(), "reboot command " + outcome.error().message());
  if (outcome->too_much_output || outcome->exit_code != 0)
    co_return Error(Errc::unavailable, fmt::format("{}: {}", who, describe_end(*outcome)));
  co_return Result<>();
}

Result<std::string> JoinedHost::boot_id() {
  return hosts_.front()->boot_id();
}

Task<MachineStart> JoinedHost::started(TimePoint deadline) {
  co_return co_await hosts_.front()->started(deadline);
}

std::vector<std::string> JoinedHost::reboot_methods() const {
  std::vector<std::string> all;
  for (const auto& host : hosts_)
    for (std::string& method : host->reboot_methods()) all.push_back(std::move(method));
  return all;
}

Task<> JoinedHost::can_reboot(TimePoint deadline) {
  co_return co_await hosts_.front()->can_reboot(deadline);
}

Task<std::string> JoinedHost::blocked_by(TimePoint deadline) {
  for (const auto& host : hosts_) {
    CO_TRY(std::string who, co_await host->blocked_by(deadline));
    if (!who.empty()) co_return who;
  }
  co_return std::string();
}

Task<> JoinedHost::reboot(std::size_t method, TimePoint deadline) {
  std::size_t left = method;
  for (const auto& host : hosts_) {
    const std::size_t count = host->reboot_methods().size();
    if (left < count) co_return co_await host->reboot(left, deadline);
    left -= count;
  }
  co_return Error(Errc::invalid, fmt::format("bug in Haulout: reboot method number {} was requested, but there are {}",
                                             method + 1, method - left));
}

Task<bool> JoinedHost::boot_complete(TimePoint deadline) {
  for (const auto& host : hosts_) {
    CO_TRY(const bool complete, co_await host->boot_complete(deadline));
    if (!complete) co_return false;
  }
  co_return true;
}

Result<> JoinedHost::show_ready(bool ready) {
  return hosts_.front()->show_ready(ready);
}

}  // namespace haulout::agent
