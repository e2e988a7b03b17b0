// A back end that runs a command, whose exit status says whether a reboot is needed (--sentinel-command). The answer is
// `unknown`, with the problem, after a status in neither list (or in both), a signal, an exceeded deadline, or a failed
// start. Therefore a missing command never causes a reboot. The first line of the command's stdout is the reason.
//
// The command runs directly, without a shell, in the environment of the agent. The back end runs it at intervals that
// vary by up to a fifth, so that the nodes of a fleet do not run it at the same time. Cancellation kills the command.
// No coroutine fails: an error is in the answer. Clock and Rng must outlive the back end.
#pragma once

#include "agent/hosts/host_command.hpp"
#include "agent/ports/backend.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// The exit statuses of the command that mean that a reboot is needed, and that none is.
struct ExitCodes {
  std::vector<int> yes = {0};
  std::vector<int> no = {1};

  // Returns the need for an exit status: `unknown` for a status in neither list or in both. Pure.
  Need need(int status) const;
};

class CommandBackend final : public Backend {
 public:
  struct Options {
    ExitCodes codes{};
    // Limit for one run of the command; a longer run is considered hung.
    Duration time_limit = std::chrono::minutes(1);
    Duration interval = recheck_interval;
  };
  CommandBackend(Clock& clock, Rng& rng, HostCommand command, Options options);

  std::string name() const override { return "command"; }
  boost::asio::awaitable<Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override;
  Task<> apply(std::string target, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;

 private:
  Clock& clock_;
  Rng& rng_;
  HostCommand command_;
  Options options_;
};

}  // namespace haulout::agent
