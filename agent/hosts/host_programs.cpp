#include "agent/hosts/host_programs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/hosts/host_command.hpp"

namespace haulout::agent {

namespace {

// Time from SIGTERM to SIGKILL. A package manager that is killed leaves packages that are not configured.
constexpr Duration stop_limit = std::chrono::seconds(10);
// Pause before the next attempt to run a program, if an earlier program of the agent was still running, or if it is
// unknown how the program ended.
constexpr Duration busy_pause = std::chrono::seconds(1);

}  // namespace

Task<> run_update_program(HostPrograms& programs, Clock& clock, HostProgram program, std::vector<int> good,
                          TimePoint deadline) {
  program.unit = update_unit;
  bool lost = false;  // in one of the runs
  for (;;) {
    const auto end = co_await programs.run(program, deadline);
    if (!end && end.error().code() != Errc::reset) co_return end.error();
    lost = lost || !end;
    if (end && end->ours) {
      if (end->success || std::find(good.begin(), good.end(), end->status) != good.end()) co_return Result<>();
      co_return Error(Errc::unavailable, fmt::format("{}: {}", program.description, end->how));
    }
    if (clock.now() >= deadline && lost)
      co_return Error(Errc::timeout, fmt::format("{}: how it ended is unknown, and no time is left to run it again; "
                                                 "see journalctl -u {} on the machine",
                                                 program.program, update_unit));
    if (clock.now() >= deadline)
      co_return Error(Errc::timeout,
                      fmt::format("{} did not run: {}, which an earlier agent had started, took until the time limit",
                                  program.program, update_unit));
    co_await clock.sleep_until(std::min(deadline, clock.now() + busy_pause));
  }
}

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
  if (outcome.signal == 0) end.status = outcome.exit_code;
  if (!end.success) end.how = describe_end(outcome);
  end.output = std::move(outcome.output);
  co_return end;
}

}  // namespace haulout::agent
