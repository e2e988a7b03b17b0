// A program with its arguments that an option names (--reboot-command, --sentinel-command). It is run as it stands,
// where the agent itself runs: without a shell, and not beneath the host's root.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "k8s/child_process.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

struct HostCommand {
  std::string program;  // a path, or a name looked up in PATH
  std::vector<std::string> args{};
  std::vector<std::pair<std::string, std::string>> env{};  // beside this process's own
  Duration grace{};                                        // between SIGTERM and SIGKILL; 0: it is killed at once
  bool operator==(const HostCommand&) const = default;
};

// The first word is the program; there must be one.
HostCommand host_command(const std::vector<std::string>& words);

// Splits by shell_words. Errc::invalid, naming the option, when that fails or when there is no program.
Result<HostCommand> parse_host_command(std::string_view option, std::string_view text);

// The file that running `program` would execute: as it stands if it has a slash, else the first in `search`, a list as
// in PATH. Errc::unavailable, with the cause alone, when there is none or it is not executable.
Result<std::string> find_program(const std::string& program, std::string_view search);
// This process's PATH, or what programs are looked up in without one.
std::string program_search_path();

// Runs it to its end, whatever that is. Errc::unavailable when it cannot be started, Errc::timeout at the deadline (it
// is ended then); both name the program. Cancellable: it is killed.
Task<k8s::ChildOutcome> run_host_command(Clock& clock, HostCommand command, TimePoint deadline);

// "exit status 3: …", "ended by signal 9 (Killed)", "printed more than 1 MiB": with the end of its stderr.
std::string describe_end(const k8s::ChildOutcome& outcome);

}  // namespace haulout::agent
