// What the commands that talk to an API server share: the interface `Job` that the program runs, the tools that a job
// borrows, look-ups of nodes with retries, and the advice that is printed after an error. Requests are cancellable and
// fail with the errors of the client.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/logging.hpp"
#include "agent/process/transports.hpp"
#include "cli/options/settings.hpp"
#include "cli/terminal/console.hpp"
#include "k8s/client.hpp"
#include "k8s/patience.hpp"
#include "retry/rng.hpp"
#include "retry/task.hpp"

namespace haulout::cli {

// Advice to print after an error: what a person can do about a failed connection or a missing right (RBAC). Pure.

// Returns the remedy for the error in one sentence; empty if the error message itself contains it, or there is none.
std::string way_out(const Error& error);

// Returns the rule, as YAML, that grants this right when it is added to a ClusterRole. An empty `group` is the core
// group.
std::string rbac_hint(std::string_view verb, std::string_view group, std::string_view resource,
                      std::string_view subresource);
// Returns a complete ClusterRole in YAML with all rights that a drain needs.
std::string rbac_of_drain();

// Returns the lines to print after an error that ended the command: the remedy and, for a denied right, the missing
// rule. `denied` is the last request that the server answered with 403, if any.
std::vector<std::string> advice(const Error& error, const std::optional<agent::RequestInfo>& denied);

// Objects that a job borrows from the program for as long as it lives.
struct Tools {
  k8s::Client& client;
  Clock& clock;
  Rng& rng;
  Console& console;
  agent::Sink& out;  // stdout: reports and events as JSON
  agent::RequestLedger& ledger;
  std::string program;  // "haulout" or "kubectl haulout", as the user calls it
};

class Job {
 public:
  virtual ~Job() = default;
  // Does the work of the command. The program cancels run() when a signal arrives; the job remembers what finish() must
  // report in that case.
  virtual boost::asio::awaitable<void> run() = 0;
  // Coroutines that run beside run() until it ends, for example a view that redraws itself. Called once, before run().
  virtual std::vector<boost::asio::awaitable<void>> helpers() { return {}; }
  // Called after run() has ended or was cancelled because of `signal`. Prints what was done and what is left. Returns
  // the exit code.
  virtual int finish(std::optional<int> signal) = 0;
};

// Longest time that one call to the API server may take in commands other than a drain.
inline constexpr Duration call_limit = std::chrono::seconds(30);

// Prints why a command waits for the server once it has waited for 5 s, and again when the cause changes. Borrows the
// tools.
class Waiting {
 public:
  explicit Waiting(Tools& tools) : tools_(tools), since_(tools.clock.now()) {}
  void tell(const Error& error);

 private:
  Tools& tools_;
  TimePoint since_;
  std::string told_;
};

// Sends a request, and repeats it until the deadline if waiting may help, as a drain does on its first contact
// (k8s/patience.hpp). Cancellable.
template <class T>
Task<T> ask(Tools tools, TimePoint deadline, std::function<Task<T>(TimePoint)> request) {
  Waiting waiting(tools);
  co_return co_await k8s::patiently<T>(tools.client, tools.rng, {deadline, call_limit}, std::move(request),
                                       [&waiting](const Error& error) { waiting.tell(error); });
}

// Returns the nodes that match the selector; the list may be empty.
Task<std::vector<k8s::Node>> select_nodes(Tools tools, std::string selector, TimePoint deadline);
// Reads all named nodes, each within `limit`. If some do not exist, returns an error that names them, so that a mistake
// in a list of names touches no node.
Task<std::vector<k8s::Node>> named_nodes(Tools tools, std::vector<std::string> names, Duration limit);
// Adds the name of the node to an error. If the error says that the node does not exist, the message is the one that a
// drain reports in that case.
Error about_node(Error error, const std::string& node);
// Returns the names of the nodes on which the command acts: those in `settings.nodes`, or those of the nodes that match
// the selector. Fails if no node matches.
Task<std::vector<std::string>> resolve_nodes(Tools tools, Settings settings, TimePoint deadline);
// Returns the error message for a selector that matches no node.
std::string no_match(const std::string& selector);

// Prints an error that ended the command, and its remedy. Returns the exit code for the error.
int report_failure(const Tools& tools, const Error& error);

}  // namespace haulout::cli
