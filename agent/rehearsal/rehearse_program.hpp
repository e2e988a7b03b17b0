// `haulout rehearse`: of snapshots in files, which needs no connection, or of the cluster of the connection, as a job.
#pragma once

#include <memory>

#include "agent/program.hpp"

namespace haulout::agent {

// `settings.rehearse.snapshots` is not empty. Returns the exit code; everything is said and flushed by then.
int rehearse_files(Process& process, const Settings& settings);

// A MakeJob, where no snapshot is given.
std::unique_ptr<Job> make_rehearse_job(Process& process, Tools tools, const Settings& settings);

}  // namespace haulout::agent
