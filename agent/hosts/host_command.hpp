// Programs that an option names (--reboot-command, --sentinel-command): splits their text into words, and runs them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "k8s/child_process.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// Splits a line into words as a POSIX shell does, without any other shell processing. Pure.
//
// Blanks separate words. All characters inside '…' are literal. Inside "…" a backslash escapes ", \, $, ` and a line
// break; outside of quotes it escapes any character. An escaped line break is removed. $, *, ~, ;, |, &, <, > and # are
// ordinary characters: the function expands nothing and does not chain commands.

// Fails with Errc::invalid if a quote is not closed, or if the text ends in a backslash or contains a NUL character.
Result<std::vector<std::string>> shell_words(std::string_view text);

// A program with its arguments, from an option (--reboot-command, --sentinel-command). It runs directly in the
// environment of the agent: without a shell, and not beneath the host's root.
struct HostCommand {
  std::string program;  // a path, or a name looked up in PATH
  std::vector<std::string> args{};
  std::vector<std::pair<std::string, std::string>> env{};  // variables in addition to this process's own
  Duration grace{};                                        // time between SIGTERM and SIGKILL; 0 kills at once
  bool repeatable = true;                                  // a person may run it by hand, to see why it takes so long
  bool operator==(const HostCommand&) const = default;
};

// Makes a command from words; the first one is the program. Precondition: `words` is not empty.
HostCommand host_command(const std::vector<std::string>& words);

// Returns the file that would be executed for `program`: the path itself if it contains a slash, otherwise the first
// match in `search`, a list like PATH. Fails with Errc::unavailable, with only the cause as its message, if there is no
// such file or it is not executable.
Result<std::string> find_program(const std::string& program, std::string_view search);
// Returns this process's PATH, or the default search path if PATH is not set.
std::string program_search_path();

// Runs the command to completion and returns its outcome, also if the command fails. Fails with Errc::unavailable if it
// cannot be started; with Errc::timeout at the deadline, after it has killed the command. Both errors name the program.
// Cancellable; that kills the command.
Task<k8s::ChildOutcome> run_host_command(Clock& clock, HostCommand command, TimePoint deadline);

// Returns "exit status 3: …", "ended by signal 9 (Killed)" or "printed more than 1 MiB", followed by the end of its
// stderr.
std::string describe_end(const k8s::ChildOutcome& outcome);

}  // namespace haulout::agent
