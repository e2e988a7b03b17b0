// Runs a program as a transient service of the host's systemd until it ends. The program runs outside the agent's
// sandbox and container, and continues if the agent dies.
//
// If a unit of that name is already running, a previous agent has started it. The agent then follows that unit instead.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/dbus/bus.hpp"

namespace haulout::agent {

struct UnitCommand {
  std::string unit;     // for example "haulout-hook-x.service"
  std::string program;  // a path on the host
  std::vector<std::string> args{};
  std::vector<std::pair<std::string, std::string>> env{};  // added to the variables that systemd sets for services
  std::string description{};
};

struct UnitEnd {
  std::string result;  // systemd's result of the service: success, exit-code, signal, timeout, …
  int code = 0;        // CLD_EXITED, CLD_KILLED, …; 0 if the program never ran
  int status = 0;      // exit status or signal
  std::string errors;  // the last part of its stderr; empty if a previous agent started the unit
  bool success() const;
};

// For example "exit status 3: no quorum", "ended by signal 9 (Killed)", "took too long and was ended". Pure.
std::string describe_end(const UnitEnd& end);

// Returns how the unit ended. systemd ends it at the deadline, and `result` is then "timeout". Errc::timeout if the
// unit still runs 20 s after the deadline; systemd is then asked to stop it. Errc::reset if the unit's result is lost.
// Otherwise fails as Bus::exchange() does. Cancellable: the unit keeps running.
Task<UnitEnd> run_unit(Bus& bus, UnitCommand command, TimePoint deadline);

}  // namespace haulout::agent
