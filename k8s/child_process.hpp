// A child process run to its end without blocking the io_context.
//
// Its stdin is empty and its stderr is kept for the error text, unless it may use the terminal. It inherits the
// environment plus `env`, and no descriptor of ours. On a passed deadline, a cancellation or too much output it is
// killed with its process group and reaped before run_child returns or unwinds.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "retry/clock.hpp"
#include "retry/result.hpp"

namespace haulout::k8s {

struct ChildCommand {
  std::string program;  // a path, or a name looked up in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  bool on_terminal = false;  // inherits stdin and stderr and stays in our process group, so that it may ask
  std::size_t stdout_limit = std::size_t{1} << 20;
  std::size_t stderr_tail = 2048;  // bytes kept of its end
};

struct ChildOutcome {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  bool too_much_output = false;
  std::string output;
  std::string error_tail;
};

// Errc::timeout when the deadline struck; Errc::unavailable when it cannot be started (the cause alone; the caller
// names the program).
Task<ChildOutcome> run_child(Clock& clock, ChildCommand command, TimePoint deadline);

}  // namespace haulout::k8s
