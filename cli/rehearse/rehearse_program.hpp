// `haulout rehearse`: of snapshots in files, which needs no connection, or of the cluster of the connection.
#pragma once

#include <functional>

#include "cli/program/program.hpp"

namespace haulout::cli {

// Runs a program on the executor of the process to its end; returns its exit code.
using RunToEnd = std::function<int(boost::asio::awaitable<int> program)>;

// Returns the exit code; everything is said and flushed by then. Only to read the cluster something is run: while it
// plays, which blocks, signals have their default actions. There is nothing to clean up.
int rehearse(agent::Process& process, const Settings& settings, const RunToEnd& run);

}  // namespace haulout::cli
