// Assembles a command from its parts (connection, transport, client, console, view, job) and runs it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>

#include "agent/process/process.hpp"
#include "cli/options/settings.hpp"
#include "cli/program/job.hpp"

namespace haulout::cli {

// A function that makes the job of a command. The objects that the job borrows outlive the job.
using MakeJob = std::function<std::unique_ptr<Job>(agent::Process& process, Tools tools, const Settings& settings)>;

// Runs the command until it ends or a signal arrives. Returns the exit code. All output is written and flushed when it
// returns.
boost::asio::awaitable<int> run_program(agent::Process& process, Settings settings, MakeJob make_job);

// Returns true if the output is the purpose of the command: JSON, a table, an explanation. Returns false if the command
// has another purpose, such as a drain with text output.
bool is_run_for_its_output(const Settings& settings);
// Waits until both sinks are written, or until their readers have accepted nothing for `patience_ms`; a negative value
// means no limit. Returns `code`. But if `matters` is true and `out` could not be written, for example because the disk
// is full, prints an error and returns a failure instead of success.
int finish_output(agent::FdSink& out, agent::FdSink& err, bool matters, int code, int patience_ms);

}  // namespace haulout::cli
