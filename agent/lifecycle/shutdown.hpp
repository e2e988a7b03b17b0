// Handles a shutdown or reboot that another program requests: the agent delays it, and drains the node during the
// delay. The state does not change. The record names the run before the agent changes anything, so that the process
// after the boot, or after a crash, uncordons the node. Without AgentParts::shutdown the agent knows of no such
// shutdowns. All coroutines are cancellable. Borrows its arguments.
#pragma once

#include <functional>
#include <string>

#include "agent/lifecycle/node_record.hpp"
#include "drain/report.hpp"

namespace haulout::agent {

// What the agent has to do before a shutdown that another program requests.
enum class Leaving {
  drains,    // the node has to be drained: the agent has not evicted its pods yet
  draining,  // a drain or an installation of updates is already running
  has_left,  // nothing: the node is drained already, or degraded and cordoned, so that the agent must not change it
};
// Returns what to do in the state of the record. The drain needs no slot, because the machine goes down in any case.
Leaving leaving_of(const Record& record);

// Reason and message for the Node after a drain that a shutdown has limited in time.
struct LeavingResult {
  std::string reason{}, message{};
};
LeavingResult leaving_result(const drain::Report& report);

class Shutdowns {
 public:
  // `drain_waits_for` returns what a drain in the state `draining` waits for, or how far the installation in the state
  // `updating` is.
  Shutdowns(boost::asio::any_io_executor executor, const Context& context, Loading& loading,
            std::function<std::string()> drain_waits_for);

  // From now on tries to delay every shutdown (ShutdownDelay::hold()). Does nothing in the state `rebooting`: there the
  // shutdown may be the one that the agent has requested.
  void delay();
  // Ends the delay, because the agent is about to request the reboot itself.
  void permit_own_reboot();
  // Runs as a child of the agent: wakes the activity when something about a shutdown changes. Ends only by
  // cancellation. Requires AgentParts::shutdown.
  boost::asio::awaitable<void> follow();
  // Called when the state has changed, because then a shutdown may require something else of the agent.
  void state_changed() { news_.notify(); }

  // Returns when another program shuts the machine down and there is still time to evict the pods. If there is nothing
  // left to do before a shutdown, lets it proceed.
  boost::asio::awaitable<void> until_drain_is_due();
  // Drains the node for as long as the shutdown waits. Returns after the shutdown was cancelled; then the Node has to
  // be read again. Requires AgentParts::shutdown.
  boost::asio::awaitable<void> drain_node();

  // Returns true while another program shuts the machine down.
  bool going_down() const;
  // Returns when it is known whether a shutdown is under way, or when that cannot be found out.
  boost::asio::awaitable<void> until_known();
  // Waits while the machine shuts down, because a node must stay cordoned until its machine is down; the agent
  // uncordons it after the boot. Returns when no shutdown is under way, at first or because it was cancelled.
  boost::asio::awaitable<void> until_called_off();

 private:
  boost::asio::awaitable<void> drain_until(TaskGroup& group, TimePoint limit);
  boost::asio::awaitable<void> show_and_drain(TimePoint limit);
  boost::asio::awaitable<drain::Report> drain(TimePoint limit);

  const Context& context_;
  Loading& loading_;
  std::function<std::string()> drain_waits_for_;
  Notifier news_;
  enum class Drain { under_way, done, called_off };
  Drain drain_ = Drain::done;  // state of the drain that drain_node() started
};

}  // namespace haulout::agent
