// Runs programs, and hook executables in particular, as transient units of systemd. Errors and cancellation: see each
// function. Borrows the bus.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/dbus/bus.hpp"
#include "agent/hooks/hooks.hpp"

namespace haulout::agent {

// A program to run as a transient service of the host's systemd (run_unit()).
struct UnitCommand {
  std::string unit;     // for example "haulout-hook-x.service"
  std::string program;  // a path on the host
  std::vector<std::string> args{};
  std::vector<std::pair<std::string, std::string>> env{};  // added to the variables that systemd sets for services
  std::string description{};
  bool keeps_output = false;  // return its stdout, instead of leaving it in the journal
};

// How a unit ended.
struct UnitEnd {
  std::string result;  // systemd's result of the service: success, exit-code, signal, timeout, …
  int code = 0;        // CLD_EXITED, CLD_KILLED, …; 0 if the program never ran
  int status = 0;      // exit status or signal
  std::string errors;  // the last part of its stderr; empty if a previous agent started the unit
  std::string output;  // its stdout if the command keeps it; at most `unit_output_limit` and one more byte
  bool ours = true;    // false if a previous agent started the unit
  bool success() const;
};

inline constexpr std::size_t unit_output_limit = std::size_t{1} << 20;

// Returns a clause like "exit status 3: no quorum", "ended by signal 9 (Killed)" or "exceeded its time limit and was
// stopped". Pure.
std::string describe_end(const UnitEnd& end);

// Runs the program as a transient service of the host's systemd, and returns how the service ended. The program runs
// outside the agent's sandbox and container, and continues if the agent ends. If a unit of that name is already
// running, a previous agent has started it; then the function waits for that unit instead.
//
// systemd ends the unit at the deadline, and `result` is then "timeout". Fails with Errc::timeout if the unit is still
// running 20 s after the deadline; systemd is then asked to stop it. Fails with Errc::reset if the unit's result is
// lost, otherwise as Bus::exchange() does. Cancellable: the unit continues.
Task<UnitEnd> run_unit(Bus& bus, UnitCommand command, TimePoint deadline);
// Returns true if systemd has a unit of this name that has not ended. Fails as Bus::exchange() does. Cancellable.
Task<bool> unit_runs(Bus& bus, std::string unit, TimePoint deadline);

// Runs hook executables as transient units of the host's systemd. The agent's sandbox or container does not restrict
// them. A hook continues if the agent ends, and the next agent waits until it ends. Its stdout is in the journal of its
// unit, haulout-hook-<point>-<name>.service. The last line of its stderr is in the error.
class UnitHooks final : public HookPrograms {
 public:
  // Borrows `bus`.
  UnitHooks(HostRoot root, Bus& bus, std::string hooks_dir)
      : root_(std::move(root)), bus_(bus), hooks_dir_(std::move(hooks_dir)) {}

  Result<HookFiles> list(HookPoint point) override { return hook_files(root_, hooks_dir_, point); }
  // Cancellable; the unit continues.
  Task<> run(HookPoint point, std::string name, HookEnvironment environment, TimePoint deadline) override;

 private:
  HostRoot root_;
  Bus& bus_;
  std::string hooks_dir_;
};

}  // namespace haulout::agent
