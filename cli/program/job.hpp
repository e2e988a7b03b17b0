// What every command is made of, and the port between the program and a command.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>
#include <vector>

#include "agent/process/logging.hpp"
#include "agent/process/requests_ledger.hpp"
#include "cli/options/settings.hpp"
#include "cli/terminal/console.hpp"
#include "k8s/client.hpp"
#include "k8s/patience.hpp"
#include "retry/rng.hpp"

namespace haulout::cli {

// Borrowed from the program for the length of a job.
struct Tools {
  k8s::Client& client;
  Clock& clock;
  Rng& rng;
  Console& console;
  agent::Sink& out;  // stdout: reports and events as JSON
  agent::RequestLedger& ledger;
  std::string program;  // as the user calls us
};

class Job {
 public:
  virtual ~Job() = default;
  // Cancelled when a signal comes; what it has done by then stays known to finish().
  virtual boost::asio::awaitable<void> run() = 0;
  // What runs beside run(), for as long: a view that draws itself, say. Asked for once, right before run().
  virtual std::vector<boost::asio::awaitable<void>> helpers() { return {}; }
  // After run() has ended or was cancelled by `signal`: says what was done and what is left. Returns the exit code.
  virtual int finish(std::optional<int> signal) = 0;
};

// A whole call to the server outside a drain takes no longer than this.
inline constexpr Duration call_limit = std::chrono::seconds(30);

// Says what a command waits for once that has lasted. Borrows the tools.
class Waiting {
 public:
  explicit Waiting(Tools& tools) : tools_(tools), since_(tools.clock.now()) {}
  void tell(const Error& error);

 private:
  Tools& tools_;
  TimePoint since_;
  std::string told_;
};

// One request, as patient as the first contact of a drain.
template <class T>
Task<T> ask(Tools tools, TimePoint deadline, std::function<Task<T>(TimePoint)> request) {
  Waiting waiting(tools);
  co_return co_await k8s::patiently<T>(tools.client, tools.rng, {deadline, call_limit}, std::move(request),
                                       [&waiting](const Error& error) { waiting.tell(error); });
}

// The nodes that match the selector; there may be none.
Task<std::vector<k8s::Node>> select_nodes(Tools tools, std::string selector, TimePoint deadline);
// All of them, each within `limit`. Where some do not exist, an error that names these: a slip in a list of names must
// touch no node.
Task<std::vector<k8s::Node>> named_nodes(Tools tools, std::vector<std::string> names, Duration limit);
// What went wrong with a node, with its name; that it does not exist, in the words of a drain.
Error about_node(Error error, const std::string& node);
// The names given, or those of the nodes that match the selector; an error when none does.
Task<std::vector<std::string>> resolve_nodes(Tools tools, Settings settings, TimePoint deadline);
// What is wrong when no node matches.
std::string no_match(const std::string& selector);

// Prints an error that ended the command, and the way out; returns its exit code.
int report_failure(const Tools& tools, const Error& error);

}  // namespace haulout::cli
