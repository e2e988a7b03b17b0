#include "agent/hosts/command_host.hpp"

#include <fmt/format.h>

namespace haulout::agent {
namespace {

// The command may be busy with something that must not be interrupted: firmware, a database.
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
  if (method != 0) co_return Error(Errc::invalid, "a command is the only way to reboot this machine");
  const std::string who = "reboot command " + command_.program;
  HostCommand command = command_;
  command.grace = grace;
  auto outcome = co_await run_host_command(clock_, std::move(command), deadline);
  if (!outcome) co_return Error(outcome.error().code(), "reboot command " + outcome.error().message());
  if (outcome->too_much_output || outcome->exit_code != 0)
    co_return Error(Errc::unavailable, fmt::format("{}: {}", who, describe_end(*outcome)));
  co_return Result<>();
}

}  // namespace haulout::agent
