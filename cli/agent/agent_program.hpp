// `haulout agent`: reads the configuration, assembles the agent from its parts and runs it until a signal arrives.
//
// SIGTERM, SIGINT and SIGHUP end the agent within a second. It writes nothing to the cluster then: the next agent
// process takes over its cordon, marks and slot. Only --release gives these up.
#pragma once

#include "agent/process/process.hpp"
#include "cli/options/settings.hpp"

namespace haulout::cli {

// Runs the agent. Returns the exit code; by then all output is written and flushed.
boost::asio::awaitable<int> run_agent(agent::Process& process, Settings settings);

}  // namespace haulout::cli
