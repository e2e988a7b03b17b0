#include "agent/hosts/host_programs.hpp"

#include "agent/hosts/host_command.hpp"

namespace haulout::agent {

namespace {

// Time from SIGTERM to SIGKILL. A package manager that is killed leaves packages that are not configured.
constexpr Duration stop_limit = std::chrono::seconds(10);

}  // namespace

Task<ProgramEnd> ChildPrograms::run(HostProgram program, TimePoint deadline) {
  HostCommand command{.program = program.program, .args = std::move(program.args)};
  command.env = std::move(program.env);
  command.grace = stop_limit;
  if (root_ != "/") {
    command.args.insert(command.args.begin(), {root_, command.program});
    command.program = "chroot";
  }
  CO_TRY(k8s::ChildOutcome outcome, co_await run_host_command(clock_, std::move(command), deadline));
  if (outcome.too_much_output) co_return Error(Errc::unavailable, program.program + ": " + describe_end(outcome));
  ProgramEnd end{.success = outcome.signal == 0 && outcome.exit_code == 0};
  if (!end.success) end.how = describe_end(outcome);
  end.output = std::move(outcome.output);
  co_return end;
}

}  // namespace haulout::agent
