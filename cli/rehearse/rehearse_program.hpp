// `haulout rehearse`: simulates drains, or the update of a fleet, on a snapshot of a cluster. The snapshot comes from
// files, which needs no connection, or from the cluster of the connection.
#pragma once

#include <functional>

#include "cli/program/program.hpp"

namespace haulout::cli {

// A function that runs a program, which is a coroutine, on the executor of the process to its end, and returns its exit
// code.
using RunToEnd = std::function<int(boost::asio::awaitable<int> program)>;

// Runs the command. Returns the exit code; by then all output is written and flushed. Calls `run` only to read the
// cluster. The simulation blocks the thread. During it signals have their default actions, because there is nothing to
// clean up.
int rehearse(agent::Process& process, const Settings& settings, const RunToEnd& run);

}  // namespace haulout::cli
