// The state `updating`: the agent installs the updates of the operating system on the drained node (--update), and then
// finds out whether they need a reboot. One object for each time that the node enters the state. Cancellable: the
// installation may then go on without the agent, and the next call of Updater::install() waits for its end. Borrows its
// arguments.
#pragma once

#include <optional>
#include <string>

#include "agent/lifecycle/proof.hpp"

namespace haulout::agent {

// Returns the decision after an installation that failed: another attempt later, or the state degraded if `limit`
// installations in a row have failed. Pure.
Decision failed_update(const Record& record, unsigned limit, std::string reason, const std::string& why);

class Updating {
 public:
  Updating(const Context& context, RebootNeed& need, Proof& proof) : context_(context), need_(need), proof_(proof) {}

  // Returns Event::installed or Event::reboot_not_needed only if no update waits any more. Never installs while a pod
  // that must leave is on the node: the proof comes right before the installation.
  boost::asio::awaitable<Decision> run();

 private:
  // Waits until the installation may begin, and returns nullopt then. Returns a decision if something prevents it.
  boost::asio::awaitable<std::optional<Decision>> until_permitted();
  // Returns true if something blocks the installation for now, and shows what.
  boost::asio::awaitable<bool> blocked();
  boost::asio::awaitable<std::optional<Decision>> install();
  boost::asio::awaitable<Decision> reboot_or_not();
  // What is known about the services after an installation.
  struct Services;
  // Restarts the services that use replaced files, and sets `warning_` if any still do afterwards, or do not run, or if
  // that is unknown. Nothing that fails here makes the update fail, because the updates are installed.
  boost::asio::awaitable<void> restart_services();
  // Restarts `services.old` if the node is proved to be drained, and looks for such services again.
  boost::asio::awaitable<void> restart(Services& services, TimePoint deadline);
  // Returns why no service may be restarted, or an empty string if nothing forbids it.
  boost::asio::awaitable<std::string> forbids_restart(TimePoint deadline);
  Decision failed(std::string reason, const std::string& why) const;
  TimePoint start_limit();

  const Context& context_;
  RebootNeed& need_;
  Proof& proof_;
  TimePoint deadline_{};
  std::string problem_;  // what blocks the installation
  std::string warning_;  // about services, if no reboot makes it needless
};

}  // namespace haulout::agent
