// A shutdown or reboot by another program: the agent delays it, and drains the node for as long as the shutdown waits.
// The state does not change. The record names the run before the agent changes anything, so that the process after the
// boot, or after a crash, takes the cordon back. Without AgentParts::shutdown there are no such shutdowns. All
// coroutines are cancellable. Borrows what it is given.
#pragma once

#include <functional>
#include <string>

#include "agent/lifecycle/loading.hpp"
#include "drain/report.hpp"

namespace haulout::agent {

// What a shutdown by another program means for a node.
enum class Leaving {
  drains,    // the node has to be drained: the agent has not evicted its pods yet
  draining,  // a drain is already running
  has_left,  // the node is drained already, or in a condition in which the agent must not change it
};
// The drain before such a shutdown needs no slot, because the machine goes down with or without one.
Leaving leaving_of(const Record& record);

// Reason and message for the Node after a drain whose time a shutdown has limited.
struct LeavingResult {
  std::string reason{}, message{};
};
LeavingResult leaving_result(const drain::Report& report);

class Shutdowns {
 public:
  // `drain_waits_for` says what a drain in the state `draining` waits for.
  Shutdowns(boost::asio::any_io_executor executor, const Context& context, Loading& loading,
            std::function<std::string()> drain_waits_for);

  // Delays every shutdown from now on, except in the state `rebooting`: there it may be the agent's own.
  void delay();
  // Ends the delay, because the agent requests the reboot itself.
  void permit_own_reboot();
  // A child of the agent: wakes its activity when something about a shutdown changes. Ends only by cancellation. Only
  // for an agent that can delay shutdowns, as the next two.
  boost::asio::awaitable<void> follow();
  // The state has changed: what a shutdown means for the node may have changed, too.
  void state_changed() { news_.notify(); }

  // Returns when another program shuts the machine down and the pods can still be evicted before. If nothing is left to
  // do before a shutdown, lets it proceed.
  boost::asio::awaitable<void> until_drain_is_due();
  // Drains the node for as long as the shutdown waits. Returns after the shutdown was called off; then the Node has to
  // be read again.
  boost::asio::awaitable<void> drain_node();

  // Returns true if another program shuts the machine down.
  bool going_down() const;
  // Returns when it is known whether a shutdown is under way, or when no answer can be had.
  boost::asio::awaitable<void> until_known();
  // Waits while the machine shuts down, because a node that goes down must stay cordoned. The agent after its boot
  // takes the cordon back.
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
  Drain drain_ = Drain::done;  // of drain_node()
};

}  // namespace haulout::agent
