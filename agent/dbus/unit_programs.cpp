#include "agent/dbus/unit_programs.hpp"

#include <fmt/format.h>

#include <csignal>

#include "agent/dbus/unit_hooks.hpp"
#include "base/plain_text.hpp"

namespace haulout::agent {

namespace {

// Number of bytes at the end of a program's stderr that a message shows. The last line would not suffice: a package
// manager prints the cause some lines before it.
constexpr std::size_t shown_errors = 300;

std::string end_of(const std::string& errors) {
  return errors.size() <= shown_errors ? errors : errors.substr(errors.size() - shown_errors);
}

}  // namespace

Task<ProgramEnd> UnitPrograms::run(HostProgram program, TimePoint deadline) {
  UnitCommand command{.unit = program.unit, .program = program.program, .description = program.description};
  command.args = std::move(program.args);
  command.env = std::move(program.env);
  command.keeps_output = program.keeps_output;
  auto end = co_await run_unit(bus_, std::move(command), deadline);
  if (!end) co_return std::move(end).error().with_context(program.program);
  if (end->output.size() > unit_output_limit)
    co_return Error(
        Errc::unavailable,
        program.program +
            ": printed more than 1 MiB, which is the limit; run it on the machine yourself to see what it prints");
  ProgramEnd out{.ours = end->ours, .success = end->success(), .output = std::move(end->output)};
  if (end->code == CLD_EXITED) out.status = end->status;
  if (out.success) co_return out;
  const std::string errors = one_line(end_of(std::exchange(end->errors, {})), shown_errors);
  out.how = describe_end(*end) + (errors.empty() ? std::string() : ": " + errors);
  if (end->result == "timeout") co_return Error(Errc::timeout, fmt::format("{}: {}", program.program, out.how));
  co_return out;
}

Task<bool> UnitPrograms::runs(std::string unit, TimePoint deadline) {
  return unit_runs(bus_, std::move(unit), deadline);
}

}  // namespace haulout::agent
