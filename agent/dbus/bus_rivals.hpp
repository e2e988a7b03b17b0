// Who else on this machine reboots it by itself.
#pragma once

#include <string>
#include <vector>

#include "agent/dbus/bus.hpp"

namespace haulout::agent {

// One sentence for each that is active: who, what it does, how to stop it. Fails as Bus::exchange does, so that nobody
// takes "could not ask" for "there is none". Where systemd is not on the bus only names on the bus can tell.
Task<std::vector<std::string>> bus_rivals(Bus& bus, TimePoint deadline);

}  // namespace haulout::agent
