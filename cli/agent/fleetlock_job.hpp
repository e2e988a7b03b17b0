// `haulout fleetlock-serve`: serves the FleetLock protocol over HTTP (agent/slots/fleetlock_service.hpp) until a signal
// arrives. It then answers no further request; a client that gets no answer asks again.
#pragma once

#include <memory>

#include "agent/process/process.hpp"
#include "cli/program/program.hpp"

namespace haulout::cli {

// Makes the job of the command. Implements MakeJob (program.hpp).
std::unique_ptr<Job> make_fleetlock_job(agent::Process& process, Tools tools, const Settings& settings);

}  // namespace haulout::cli
