// `haulout migrate kured`: writes the configuration of the agents that does what kured does, and says what becomes of
// each option of kured. kured's options are read from a file (no connection is needed), or from its DaemonSet in the
// cluster. With --hold-lock and --release-lock it takes kured's lock or gives it back, and writes nothing else.
#pragma once

#include <string_view>
#include <vector>

#include "cli/program/program.hpp"
#include "cli/rehearse/snapshot_source.hpp"

namespace haulout::cli {

// Runs the command, prints its errors, and returns the exit code. All output is written and flushed when it returns.
// Calls `run` only if it needs the API server. Borrows `process` and `settings`.
int migrate(agent::Process& process, const Settings& settings, const RunToEnd& run);

// Returns the job that reads the DaemonSet of the settings from the API server and does what the settings say.
std::unique_ptr<Job> make_migrate_job(Tools tools, const Settings& settings);

}  // namespace haulout::cli
