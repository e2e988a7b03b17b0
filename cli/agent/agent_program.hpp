// `haulout agent`: reads the configuration, puts the agent together from its parts and runs it to a signal.
//
// SIGTERM, SIGINT and SIGHUP end it within a second, and it writes nothing: cordon, marks and turn are its successor's.
// Giving up is another matter: --release.
#pragma once

#include "agent/process/process.hpp"
#include "cli/options/settings.hpp"

namespace haulout::cli {

// Returns the exit code; everything is said and flushed by then.
boost::asio::awaitable<int> run_agent(agent::Process& process, Settings settings);

}  // namespace haulout::cli
