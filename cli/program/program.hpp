// Puts a command together from its parts: connection, transport, client, console, view, job.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>

#include "agent/process/process.hpp"
#include "cli/options/settings.hpp"
#include "cli/program/job.hpp"

namespace haulout::cli {

// Makes the job of a command; what it borrows lives until the job has finished.
using MakeJob = std::function<std::unique_ptr<Job>(agent::Process& process, Tools tools, const Settings& settings)>;

// Runs the command to its end or to a signal; returns the exit code. Everything is said and flushed by then.
boost::asio::awaitable<int> run_program(agent::Process& process, Settings settings, MakeJob make_job);

// What this command prints is what it was run for: a report for machines, a table, an explanation. A drain in text is
// run for what it does.
bool is_run_for_its_output(const Settings& settings);
// Waits until both sinks are written, or their readers have taken nothing for `patience_ms`; negative: for ever.
// Returns the exit code: where `matters` and the output could not be kept (a full disk), that is said and no success.
int finish_output(agent::FdSink& out, agent::FdSink& err, bool matters, int code, int patience_ms);

}  // namespace haulout::cli
