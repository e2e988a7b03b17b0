// The agent as a running whole: finds out which node it serves, makes host, back end, turns and life cycle, and runs
// them side by side. Borrows what it is given; owns the parts.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>

#include "agent/config/option.hpp"
#include "agent/logging.hpp"
#include "agent/program.hpp"
#include "http/transport.hpp"

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
  ~AgentService();
  // Until cancelled. Returns earlier only when the agent cannot begin; why stands in the log.
  boost::asio::awaitable<void> run();
  // After run() has returned.
  int exit_code() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace haulout::agent
