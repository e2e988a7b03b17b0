// Runs a child process to its end without blocking the io_context.
//
// The child inherits the environment plus `env`, or gets only `env`. It inherits no descriptor except `kept` and, with
// `inherits_stdin`, stdin. However much it writes, the deadline and a cancellation are served. It is killed if the
// deadline passes, if the call is cancelled, or if it writes too much output. If it has its own process group, the
// whole group is killed, also if the child itself has ended at SIGTERM. It is reaped before run_child returns or
// unwinds, unless it hangs in the kernel. Fails with Errc::unavailable if the child cannot be started or observed.
// Cancellable.
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
  std::string program;  // a path, or a name that is looked up in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  bool clean_environment = false;  // the child gets `env` and nothing of this process's environment
  int kept = -1;                   // a descriptor that the child gets as its descriptor 3; -1: none
  bool inherits_stdin = false;     // false: stdin is /dev/null
  // Time that the child has at the deadline between SIGTERM and SIGKILL. 0: the child is killed at once. If it is not
  // 0, a cancelled call begins with SIGTERM, too, and sends SIGKILL half a second later if the child still runs. The
  // thread blocks until the child has ended.
  Duration grace{};
  // If false, the child stays in this process's group and can read from the terminal if this process can.
  bool own_group = true;
  std::size_t stdout_limit = std::size_t{1} << 20;
  std::size_t stderr_tail = 2048;                   // number of bytes kept from the end of stderr
  std::function<void(std::string_view)> on_stderr;  // receives each piece of stderr as it arrives; may be empty
};

struct ChildOutcome {
  int exit_code = -1;  // -1 if a signal ended the child
  int signal = 0;
  bool too_much_output = false;
  bool timed_out = false;  // the deadline passed before the child ended
  std::string output;
  std::string error_tail;
};

// Runs the child and returns how it ended, also if that was by the deadline, a signal or too much output. Fails with
// Errc::unavailable as above. The message has only the cause; the caller adds the program's name.
Task<ChildOutcome> run_child(Clock& clock, ChildCommand command, TimePoint deadline);

}  // namespace haulout::k8s
