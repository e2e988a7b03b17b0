// Runs the commands that connect to an API server: assembles each from its parts (connection, transport, client,
// console, view, job). Also what these commands share: the interface `Job` that the program runs, the tools that a job
// borrows, look-ups of nodes with retries, and the advice that is printed after an error. The requests are cancellable
// and fail with the errors of the client.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/logging.hpp"
#include "agent/process/process.hpp"
#include "agent/process/transports.hpp"
#include "cli/options/settings.hpp"
#include "cli/terminal/console.hpp"
#include "k8s/client.hpp"
#include "k8s/patience.hpp"
#include "retry/rng.hpp"
#include "retry/task.hpp"

namespace haulout::cli {

// The functions below return advice to print after an error: how to fix a failed connection or a missing right (RBAC).
// Pure.

// Returns the remedy for the error in one sentence. Returns an empty string if the message of the error already
// contains it, or if there is none.
std::string way_out(const Error& error);

// Returns the rule, as YAML, that grants this right when it is added to a ClusterRole. An empty `group` is the core
// group.
std::string rbac_hint(std::string_view verb, std::string_view group, std::string_view resource,
                      std::string_view subresource);
// Returns a complete ClusterRole in YAML with all rights that a drain needs.
std::string rbac_of_drain();

// Returns the lines to print after an error that has ended the command: the remedy and, for a missing right, the RBAC
// rule that grants it. `denied` is the last request to which the server responded with 403, if any.
std::vector<std::string> advice(const Error& error, const std::optional<agent::RequestInfo>& denied);

// What a job borrows from the program. The references are valid until the job is destroyed.
struct Tools {
  k8s::Client& client;
  Clock& clock;
  Rng& rng;
  Console& console;
  agent::Sink& out;  // stdout: reports and events as JSON
  agent::DeniedRequest& denied;
  std::string program;  // "haulout" or "kubectl haulout", as the user calls it
};

class Job {
 public:
  virtual ~Job() = default;
  // Does the work of the command. The program cancels it when a signal arrives. So at each suspension the job must
  // already have stored in its members what finish() prints.
  virtual boost::asio::awaitable<void> run() = 0;
  // Returns coroutines that run concurrently with run() until it ends, for example to redraw a view. Called once,
  // before run().
  virtual std::vector<boost::asio::awaitable<void>> helpers() { return {}; }
  // Undoes what must not stay after a signal. Called after run() was cancelled because of one, and before finish().
  // Must end within seconds; a second signal ends the process.
  virtual boost::asio::awaitable<void> clean_up() { co_return; }
  // Called after run() has ended, or after it was cancelled because of `signal`. Prints what was done and what was not.
  // Returns the exit code.
  virtual int finish(std::optional<int> signal) = 0;
};

// Limit for one call to the API server in all commands except a drain.
inline constexpr Duration call_limit = std::chrono::seconds(30);

// Prints the error because of which a command waits for the API server, once it has waited for 5 s, and again when the
// error changes. Borrows the tools.
class Waiting {
 public:
  explicit Waiting(Tools& tools) : tools_(tools), since_(tools.clock.now()) {}
  void tell(const Error& error);

 private:
  Tools& tools_;
  TimePoint since_;
  std::string told_;
};

// Sends a request, and retries it until the deadline after errors that may be temporary, as a drain does with its first
// request (k8s/patience.hpp). Cancellable.
template <class T>
Task<T> ask(Tools tools, TimePoint deadline, std::function<Task<T>(TimePoint)> request) {
  Waiting waiting(tools);
  co_return co_await k8s::patiently<T>(tools.client, tools.rng, {deadline, call_limit}, std::move(request),
                                       [&waiting](const Error& error) { waiting.tell(error); });
}

// Returns the nodes that match the selector; the list may be empty.
Task<std::vector<k8s::Node>> select_nodes(Tools tools, std::string selector, TimePoint deadline);
// Returns the named nodes; reads each within `limit`. If some do not exist, fails with an error that names them all, so
// that a mistake in a list of names changes no node.
Task<std::vector<k8s::Node>> named_nodes(Tools tools, std::vector<std::string> names, Duration limit);
// Adds the name of the node to an error. If the error says that the node does not exist, replaces its message by the
// one of a drain.
Error about_node(Error error, const std::string& node);
// Returns the names of the nodes on which the command acts: `settings.nodes` or, with a selector, the nodes that match
// it. Fails if none matches.
Task<std::vector<std::string>> resolve_nodes(Tools tools, Settings settings, TimePoint deadline);
// Returns the error message for a selector that matches no node.
std::string no_match(const std::string& selector);

// Prints an error that has ended the command, and its remedy. Returns the exit code for the error.
int report_failure(const Tools& tools, const Error& error);

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
