// Checks whether a D-Bus server answers on the socket of a bus. systemd often keeps the socket open while the bus is
// stopped or starting. Such a socket accepts connections but may not answer for a long time, and the handshake of the
// D-Bus library would block the thread.
#pragma once

#include <string>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// Authenticates as the D-Bus library does, then disconnects. Errc::unreachable. Cancellable.
Task<> probe_bus(Clock& clock, std::string socket_path, TimePoint deadline);

}  // namespace haulout::agent
