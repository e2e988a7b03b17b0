#include "agent/dbus/unit_hooks.hpp"

#include <fmt/format.h>

#include "agent/dbus/transient_unit.hpp"

namespace haulout::agent {

Task<> UnitHooks::run(HookPoint point, std::string name, HookEnvironment environment, TimePoint deadline) {
  const std::string path = hook_path(hooks_dir_, point, name);
  const UnitCommand command{.unit = fmt::format("haulout-hook-{}-{}.service", to_string(point), name),
                            .program = path,
                            .args = {std::string(to_string(point))},
                            .env = std::move(environment),
                            .description = fmt::format("Haulout hook {}/{}", to_string(point), name)};
  auto end = co_await run_unit(bus_, command, deadline);
  // The result of a unit that a previous agent started may be lost. Hooks may run twice, so run it again.
  if (!end && end.error().code() == Errc::reset) end = co_await run_unit(bus_, command, deadline);
  if (!end) co_return std::move(end).error().with_context("hook " + path);
  if (end->success()) co_return Result<>();
  co_return Error(end->result == "timeout" ? Errc::timeout : Errc::unavailable,
                  fmt::format("hook {}: {} (journalctl -u {})", path, describe_end(*end), command.unit));
}

}  // namespace haulout::agent
