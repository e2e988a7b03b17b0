// `haulout rehearse`: plays drains, or the update of a fleet, on a snapshot. The snapshot comes from files, which needs
// no connection, or from the cluster of the connection.
#pragma once

#include <functional>

#include "cli/program/program.hpp"

namespace haulout::cli {

// Runs a program on the executor of the process to its end; returns its exit code.
using RunToEnd = std::function<int(boost::asio::awaitable<int> program)>;

// Returns the exit code; by then all output is written and flushed. Calls `run` only to read the cluster. Playing the
// snapshot blocks the thread. Meanwhile signals have their default actions, because there is nothing to clean up.
int rehearse(agent::Process& process, const Settings& settings, const RunToEnd& run);

}  // namespace haulout::cli
