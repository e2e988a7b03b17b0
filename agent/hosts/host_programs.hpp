// Programs of the host that the agent runs itself, such as apt-get: the interface, and the implementation for hosts
// without systemd. agent/dbus/unit_programs.hpp runs them as units of systemd. Tests have fakes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// A program of the host with its arguments.
struct HostProgram {
  std::string program;  // absolute path on the host
  std::vector<std::string> args{};
  std::vector<std::pair<std::string, std::string>> env{};  // variables in addition to those of its parent
  std::string unit{};         // the name of its unit if systemd runs it: "haulout-update.service"
  std::string description{};  // the description of that unit
  bool keeps_output = false;  // return its stdout; a unit otherwise writes it to the journal
};

// How a program ended.
struct ProgramEnd {
  // False: a unit of that name was already running, which an earlier agent had started, and this is how that one ended.
  // Then the program of this call was not run.
  bool ours = true;
  bool success = false;  // it ended with exit status 0
  int status = -1;       // its exit status; negative if it was ended by a signal, or if it is unknown
  std::string how{};     // a clause if not `success`: "exit status 100: E: …"
  std::string output{};  // its stdout, if the caller asked for it
};

class HostPrograms {
 public:
  virtual ~HostPrograms() = default;
  // Runs the program until it ends; returns also if it fails. Fails with Errc::timeout at the deadline; the program is
  // then ended. Fails with Errc::reset if it is unknown how the program ended, and with Errc::unavailable if it cannot
  // be started, or prints more than 1 MiB. Errors name the program. Cancellable; see the implementations.
  virtual Task<ProgramEnd> run(HostProgram program, TimePoint deadline) = 0;
  // Returns true if a unit of this name runs, also if an earlier agent has started it. Always false without systemd.
  // Cancellable.
  virtual Task<bool> runs(std::string unit, TimePoint deadline) = 0;
};

// The unit of all programs that change the machine. One name for all of them, so that systemd runs one at a time.
inline constexpr const char* update_unit = "haulout-update.service";

// Runs a program that changes the machine, in the unit `update_unit`. Waits until such a program of an earlier agent
// has ended. Repeats the program if it is unknown how it ended; so it must be one that may run twice. Succeeds if its
// exit status is one of `good`. Otherwise fails with Errc::unavailable, and as HostPrograms::run() does. Cancellable.
Task<> run_update_program(HostPrograms& programs, Clock& clock, HostProgram program, std::vector<int> good,
                          TimePoint deadline);

// Runs the programs as child processes of the agent; beneath another root than "/" by chroot(8). Cancelling run() ends
// the program.
class ChildPrograms final : public HostPrograms {
 public:
  // Borrows the clock. `root` is the directory at which the host's file system is mounted.
  ChildPrograms(Clock& clock, std::string root) : clock_(clock), root_(std::move(root)) {}
  Task<ProgramEnd> run(HostProgram program, TimePoint deadline) override;
  Task<bool> runs(std::string, TimePoint) override { co_return false; }

 private:
  Clock& clock_;
  std::string root_;
};

}  // namespace haulout::agent
