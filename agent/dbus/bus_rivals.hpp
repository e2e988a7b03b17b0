// Detects other programs on this machine that reboot it by themselves.
#pragma once

#include <string>
#include <vector>

#include "agent/dbus/bus.hpp"

namespace haulout::agent {

// Returns one sentence for each active program: its unit, what it does, how to stop it. Fails as Bus::exchange() does;
// then it is unknown whether such a program is active. If systemd is not on the bus, checks only the programs that have
// a name on the bus. Cancellable.
Task<std::vector<std::string>> bus_rivals(Bus& bus, TimePoint deadline);

}  // namespace haulout::agent
