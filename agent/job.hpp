// What every command is made of, and the port between the program and a command.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>
#include <vector>

#include "agent/console.hpp"
#include "agent/logging.hpp"
#include "agent/requests_ledger.hpp"
#include "agent/settings.hpp"
#include "k8s/client.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// Borrowed from the program for the length of a job.
struct Tools {
  k8s::Client& client;
  Clock& clock;
  Rng& rng;
  Console& console;
  Sink& out;  // stdout: reports and events as JSON
  RequestLedger& ledger;
  std::string program;  // as the user calls us
};

class Job {
 public:
  virtual ~Job() = default;
  // Cancelled when a signal comes; what it has done by then stays known to finish().
  virtual boost::asio::awaitable<void> run() = 0;
  // After run() has ended or was cancelled by `signal`: says what was done and what is left. Returns the exit code.
  virtual int finish(std::optional<int> signal) = 0;
};

// A whole call to the server outside a drain takes no longer than this.
inline constexpr Duration call_limit = std::chrono::seconds(30);

// The nodes named, or those that match the selector; an error when none does.
Task<std::vector<std::string>> resolve_nodes(k8s::Client& client, Settings settings, TimePoint deadline);

// Prints an error that ended the command, and the way out; returns its exit code.
int report_failure(const Tools& tools, const Error& error);

}  // namespace haulout::agent
