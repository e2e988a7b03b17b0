// `haulout agent`: reads the configuration, assembles the agent from its parts and runs it until SIGTERM, SIGINT or
// SIGHUP arrives. With --check or --release, runs that task instead and returns when it has ended.
//
// After one of these signals the agent ends within a second and writes nothing to the cluster. Its cordon, marks and
// slot stay, and the next agent process continues with them. To give them up instead, run `haulout agent --release`.
#pragma once

#include "agent/process/process.hpp"
#include "cli/options/settings.hpp"

namespace haulout::cli {

// Runs the agent and returns the exit code of the process. Errors are in the log and in the exit code. Ends by a
// signal, not by cancellation. All output is written and flushed when it returns. Borrows `process`.
boost::asio::awaitable<int> run_agent(agent::Process& process, Settings settings);

}  // namespace haulout::cli
