// A command that says whether a reboot is needed (--sentinel-command), by its exit status. A status that is in neither
// list (or in both), a signal, a passed deadline, a program that cannot be started: unknown, with the problem. So a
// command that is missing never reboots a node. The first line of its stdout is the reason.
//
// Run directly, never by a shell, where the agent runs. Asked again now and then, give or take a fifth so that a fleet
// that was started together does not ask together. Clock and Rng must outlive the back end.
#pragma once

#include "agent/backends/recheck.hpp"
#include "agent/hosts/host_command.hpp"
#include "agent/ports/backend.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

struct ExitCodes {
  std::vector<int> yes = {0};
  std::vector<int> no = {1};

  // Pure. Unknown for a status in neither list or in both.
  Need need(int status) const;
};

class CommandBackend final : public Backend {
 public:
  struct Options {
    ExitCodes codes{};
    // A check that has not ended by then will not.
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
