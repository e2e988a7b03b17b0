// A program that the host's systemd runs to its end as a transient service: outside of this process's sandbox and
// container, and on after this process has died.
//
// While a unit of that name runs already, that one is followed instead: a predecessor of this process has started it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/dbus/bus.hpp"

namespace haulout::agent {

struct UnitCommand {
  std::string unit;     // "haulout-hook-x.service"
  std::string program;  // a path of the host
  std::vector<std::string> args{};
  std::vector<std::pair<std::string, std::string>> env{};  // all that it has beside what systemd gives each service
  std::string description{};
};

struct UnitEnd {
  std::string result;  // systemd's word: success, exit-code, signal, timeout, …
  int code = 0;        // CLD_EXITED, CLD_KILLED, …; 0: the program never ran
  int status = 0;      // exit status or signal
  std::string errors;  // the end of its stderr; empty when it was a predecessor's
  bool success() const;
};

// "exit status 3: no quorum", "ended by signal 9 (Killed)", "took too long and was ended". Pure.
std::string describe_end(const UnitEnd& end);

// The end that it came to. Errc::timeout at the deadline, by which systemd has ended it; Errc::reset when nobody knows
// any more how it ended; else as Bus::exchange. Cancellable: the unit goes on.
Task<UnitEnd> run_unit(Bus& bus, UnitCommand command, TimePoint deadline);

}  // namespace haulout::agent
