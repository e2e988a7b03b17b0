// Makes the jobs of `haulout drain`, `cordon` and `uncordon`. A drain gets a live view if its text goes to a terminal,
// else a view that prints one line per change.
#pragma once

#include <memory>

#include "cli/program/program.hpp"

namespace haulout::cli {

// Implements MakeJob (program.hpp). `settings.command` must be drain, cordon or uncordon.
std::unique_ptr<Job> make_drain_job(agent::Process& process, Tools tools, const Settings& settings);

}  // namespace haulout::cli
