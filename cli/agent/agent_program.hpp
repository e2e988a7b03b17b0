// `haulout agent`: reads the configuration, assembles the agent from its parts and runs it until a signal arrives.
//
// SIGTERM, SIGINT and SIGHUP end it within a second. It writes nothing to the cluster then: the next agent process
// takes over its cordon, marks and slot. Only --release gives them up.
#pragma once

#include "agent/process/process.hpp"
#include "cli/options/settings.hpp"

namespace haulout::cli {

// Returns the exit code. By then all output is written and flushed.
boost::asio::awaitable<int> run_agent(agent::Process& process, Settings settings);

}  // namespace haulout::cli
