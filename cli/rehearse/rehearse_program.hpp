// `haulout rehearse`: simulates drains, or the update of a fleet, on a snapshot of a cluster. The snapshot is read from
// files (no connection is needed) or from the API server.
#pragma once

#include "cli/rehearse/snapshot_source.hpp"

namespace haulout::cli {

// Runs the command, prints its errors, and returns the exit code. All output is written and flushed when it returns.
// Calls `run` only to read the snapshot from the API server. The simulation blocks the thread and cannot be cancelled.
// During the simulation, signals have their default actions, because there is nothing to clean up. Borrows `process`
// and `settings`.
int rehearse(agent::Process& process, const Settings& settings, const RunToEnd& run);

}  // namespace haulout::cli
