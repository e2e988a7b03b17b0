// Assembles a command from its parts (connection, transport, client, console, view, job) and runs it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>

#include "agent/process/process.hpp"
#include "cli/options/settings.hpp"
#include "cli/program/job.hpp"

namespace haulout::cli {

// A function that makes the job of a command. The objects that the job borrows live until it has finished.
using MakeJob = std::function<std::unique_ptr<Job>(agent::Process& process, Tools tools, const Settings& settings)>;

// Runs the command to its end or until a signal arrives. Returns the exit code. By then all output is written and
// flushed.
boost::asio::awaitable<int> run_program(agent::Process& process, Settings settings, MakeJob make_job);

// Returns true if the output is the purpose of the command: a report for machines, a table, an explanation. Returns
// false for example for a drain with text output, because its purpose is the drain.
bool is_run_for_its_output(const Settings& settings);
// Waits until both sinks are written, or until their readers have taken nothing for `patience_ms`; a negative value
// means without limit. Returns the exit code: `code`, unless `matters` is true and `out` could not be written, for
// example because the disk is full. In that case prints an error and turns success into failure.
int finish_output(agent::FdSink& out, agent::FdSink& err, bool matters, int code, int patience_ms);

}  // namespace haulout::cli
