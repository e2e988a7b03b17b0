#include "agent/hooks/child_hooks.hpp"

#include <fmt/format.h>

#include "agent/hosts/host_command.hpp"
#include "base/plain_text.hpp"

namespace haulout::agent {

Task<> ChildHooks::run(HookPoint point, std::string name, HookEnvironment environment, TimePoint deadline) {
  const std::string path = hook_path(hooks_dir_, point, name);
  CO_TRY(std::string program, root_.locate(path));
  HostCommand command{.program = std::move(program), .args = {std::string(to_string(point))}};
  command.env = std::move(environment);
  auto outcome = co_await run_host_command(clock_, std::move(command), deadline);
  if (!outcome) co_return Error(outcome.error().code(), "hook " + outcome.error().message());
  if (outcome->exit_code == 0 && !outcome->too_much_output) co_return Result<>();
  std::string how = describe_end(*outcome);
  // Many scripts print the reason for a failure on stdout.
  if (const std::string last = last_line(outcome->output); outcome->error_tail.empty() && !last.empty())
    how += ": " + last;
  co_return Error(Errc::unavailable, fmt::format("hook {}: {}", path, how));
}

}  // namespace haulout::agent
