// The jobs of `haulout drain`, `cordon` and `uncordon`, with the view that suits where their text goes.
#pragma once

#include <memory>

#include "cli/program/program.hpp"

namespace haulout::cli {

// A MakeJob. `settings.command` is one of the above.
std::unique_ptr<Job> make_drain_job(agent::Process& process, Tools tools, const Settings& settings);

}  // namespace haulout::cli
