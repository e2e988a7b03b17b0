// `haulout agent --check`: tries everything that the agent will need, without a change to the cluster or the machine.
// Cancellable.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string_view>

#include "agent/service/agent_whole.hpp"

namespace haulout::agent {

class AgentCheck {
 public:
  // Calls `print` with one line for each check. Borrows the clock.
  AgentCheck(Clock& clock, std::function<void(std::string_view line)> print)
      : clock_(clock), print_(std::move(print)) {}

  // Prints the only line of the output if the parts of the agent could not be made, so that run() is not called.
  void start_failed(const Error& error);
  boost::asio::awaitable<void> run(AgentWhole& whole, const AgentConfig& config);
  // Returns true if a check has failed.
  bool failed() const { return failed_; }

 private:
  enum class Mark { ok, note, off, failed };
  void say(Mark mark, std::string_view subject, std::string_view text);
  void check_authority(AgentWhole& whole);
  boost::asio::awaitable<Pending> check_backend(AgentWhole& whole, const AgentConfig& config);
  boost::asio::awaitable<void> check_updates(AgentWhole& whole);
  boost::asio::awaitable<void> check_reboot(AgentWhole& whole);
  void check_hooks(AgentWhole& whole);
  boost::asio::awaitable<void> check_gates(AgentWhole& whole, const AgentConfig& config, const k8s::Node& node,
                                           const Pending& pending);
  boost::asio::awaitable<void> check_rivals(AgentWhole& whole);
  TimePoint soon() const;

  Clock& clock_;
  std::function<void(std::string_view)> print_;
  bool failed_ = false;
};

}  // namespace haulout::agent
