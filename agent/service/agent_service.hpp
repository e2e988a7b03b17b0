// What `haulout agent` does once its configuration and its credential are there: serve, check or release. Borrows what
// it is given. One of the three, once.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "agent/process/server_warnings.hpp"
#include "agent/process/transports.hpp"
#include "agent/report/status_pages.hpp"
#include "agent/service/agent_whole.hpp"

namespace haulout::agent {

struct ServiceInputs {
  Process& process;
  const AgentConfig& config;
  Log& log;
  http::Transport& api;  // with the agent's own credential
};

class AgentService {
 public:
  explicit AgentService(ServiceInputs inputs);

  // The agent itself, until cancelled. Returns earlier only when it cannot begin; why stands in the log. An API server
  // that is away is waited for.
  boost::asio::awaitable<void> serve();
  // Tries everything that the agent will need and changes nothing; a line for each on stdout.
  boost::asio::awaitable<void> check();
  // See lifecycle/release.hpp; what was done, on stdout.
  boost::asio::awaitable<void> release();
  // A signal has ended it.
  void say_goodbye() {
    if (whole_) whole_->reporter().say_goodbye();
  }
  // After one of them has returned.
  int exit_code() const { return exit_code_; }

 private:
  Surroundings surroundings() { return {in_.process, in_.config, in_.log, watched_, bus_}; }
  boost::asio::awaitable<void> live(TaskGroup& group);
  boost::asio::awaitable<void> check_all(TaskGroup& group);
  boost::asio::awaitable<void> release_all(TaskGroup& group);
  // Asks again for as long as the API server is away; an error is final.
  Task<std::unique_ptr<AgentWhole>> come_up();
  Task<std::unique_ptr<AgentWhole>> try_once(TimePoint deadline);
  // Takes the whole over that comes up, and runs what it needs.
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
