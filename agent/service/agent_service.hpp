// Serves, checks or releases: what `haulout agent` does once it has its configuration and its credential. Borrows its
// inputs. Call only one of the three functions, and only once. All three are cancellable.
#pragma once

#include <algorithm>
#include <boost/asio/awaitable.hpp>

#include "agent/process/transports.hpp"
#include "agent/report/status_pages.hpp"
#include "agent/service/agent_whole.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

struct ServiceInputs {
  Process& process;
  const AgentConfig& config;
  Log& log;
  http::Transport& api;  // authenticated by the agent's own credential
};

// The time limit of one attempt to start the agent. Pure.
//
// Doubles the limit after each attempt that timed out. Otherwise the agents of a fleet that start together might repeat
// the same requests to a slow API server without ever completing them. Other failures do not change the limit.
class StartPatience {
 public:
  static constexpr Duration first = std::chrono::seconds(30);
  static constexpr Duration longest = std::chrono::minutes(8);

  Duration limit() const { return limit_; }
  void failed(const Error& error) {
    if (error.code() == Errc::timeout) limit_ = std::min(2 * limit_, longest);
  }

 private:
  Duration limit_ = first;
};

class AgentService {
 public:
  explicit AgentService(ServiceInputs inputs);

  // Runs the agent until it is cancelled. Returns earlier only if the agent cannot start; the reason is in the log.
  // Waits while the API server is unavailable.
  boost::asio::awaitable<void> serve();
  // Tries everything that the agent will need, and changes nothing. Prints one line per check to stdout.
  boost::asio::awaitable<void> check();
  // Calls agent::release(), see lifecycle/release.hpp. Prints what it did to stdout.
  boost::asio::awaitable<void> release();
  // Reports to systemd that the agent is stopping. Call it after a signal has ended the agent.
  void say_goodbye() {
    if (whole_) whole_->reporter().say_goodbye();
  }
  // Valid after serve(), check() or release() has returned.
  int exit_code() const { return exit_code_; }

 private:
  Surroundings surroundings() { return {in_.process, in_.config, in_.log, watched_, bus_}; }
  boost::asio::awaitable<void> live(TaskGroup& group);
  boost::asio::awaitable<void> check_all(TaskGroup& group);
  boost::asio::awaitable<void> release_all(TaskGroup& group);
  // Makes the parts of the agent. Retries while the API server is unavailable; returns any other error.
  Task<std::unique_ptr<AgentWhole>> come_up();
  Task<std::unique_ptr<AgentWhole>> try_once(TimePoint deadline);
  // Awaits `coming`, stores the agent's parts in `whole_`, and runs the bus in `group` if a part needs it.
  Task<> begin(TaskGroup& group, Task<std::unique_ptr<AgentWhole>> coming);
  Task<> serve_pages(TaskGroup& group);
  boost::asio::awaitable<void> tell_rivals();
  boost::asio::awaitable<void> tell_cautions();
  void failed(const Error& error);
  void say(std::string_view line);

  ServiceInputs in_;
  ServerWarnings warnings_;
  WatchedTransport watched_;
  Bus bus_;
  std::unique_ptr<AgentWhole> whole_;
  std::unique_ptr<http::Server> pages_;
  int exit_code_ = 0;
};

}  // namespace haulout::agent
