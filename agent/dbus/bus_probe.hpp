// Whether somebody behind a bus's socket speaks D-Bus now. The socket of a bus that is stopped or just starting is
// often held open by systemd: it accepts, and answers some day, while the handshake of the D-Bus library waits in
// place.
#pragma once

#include <string>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// Authenticates, as the library will, and hangs up. Errc::unreachable. Cancellable.
Task<> probe_bus(Clock& clock, std::string socket_path, TimePoint deadline);

}  // namespace haulout::agent
