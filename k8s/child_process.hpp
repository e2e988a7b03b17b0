// A child process run to its end without blocking the io_context.
//
// It inherits the environment plus `env`, and no descriptor of ours but stdin where it may have that. On a passed
// deadline, a cancellation or too much output it is killed, with its process group if that is its own, and reaped
// before run_child returns or unwinds.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

struct ChildCommand {
  std::string program;  // a path, or a name looked up in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  bool inherits_stdin = false;  // otherwise that is empty
  // What it has after SIGTERM at the deadline, or up to half a second at a cancellation, before it is killed; 0:
  // nothing.
  Duration grace{};
  bool own_group = true;  // otherwise it stays in ours, and may read from the terminal where we may
  std::size_t stdout_limit = std::size_t{1} << 20;
  std::size_t stderr_tail = 2048;                   // bytes kept of its end
  std::function<void(std::string_view)> on_stderr;  // told what it writes there, as it comes; may be empty
};

struct ChildOutcome {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  bool too_much_output = false;
  bool timed_out = false;  // the deadline struck
  std::string output;
  std::string error_tail;
};

// Errc::unavailable when it cannot be started (the cause alone; the caller names the program).
Task<ChildOutcome> run_child(Clock& clock, ChildCommand command, TimePoint deadline);

}  // namespace haulout::k8s
