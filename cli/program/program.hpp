// Assembles a command from its parts (connection, transport, client, console, view, job) and runs it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>

#include "agent/process/process.hpp"
#include "cli/options/settings.hpp"
#include "cli/program/job.hpp"

namespace haulout::cli {

// Makes the job of a command. What the job borrows lives until the job has finished.
using MakeJob = std::function<std::unique_ptr<Job>(agent::Process& process, Tools tools, const Settings& settings)>;

// Runs the command to its end or until a signal arrives. Returns the exit code. By then all output is written and
// flushed.
boost::asio::awaitable<int> run_program(agent::Process& process, Settings settings, MakeJob make_job);

// Whether the output is the purpose of the command: a report for machines, a table, an explanation. The purpose of a
// drain with text output is the drain itself.
bool is_run_for_its_output(const Settings& settings);
// Waits until both sinks are written, or until their readers have taken nothing for `patience_ms`; a negative value
// means without limit. Returns the exit code, which is `code` unless `matters` is true and `out` could not be written
// (a full disk): then prints an error, and success becomes failure.
int finish_output(agent::FdSink& out, agent::FdSink& err, bool matters, int code, int patience_ms);

}  // namespace haulout::cli
