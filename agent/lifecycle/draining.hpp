// The state `draining`: from the confirmed slot to the drained node. Also the exclusion of the node from external load
// balancers, which begins before the first eviction. Nothing here fails: a problem delays the state, or becomes the
// decision that ends it. Cancellable. Borrows its arguments.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/lifecycle/context.hpp"
#include "agent/lifecycle/drain_status.hpp"
#include "agent/lifecycle/hooks.hpp"
#include "agent/lifecycle/permission.hpp"
#include "agent/lifecycle/proof.hpp"

namespace haulout::agent {

// What delays a drain before the first eviction.
struct HoldUp {
  std::string reason{}, message{};
};

// Excludes the node from external load balancers before the first eviction, so that they stop sending traffic to it.
// Retries until that succeeds, and then waits for lb_drain_wait; does nothing if that option is 0. Call it after the
// cordon. If the node is already excluded, the wait counts from the time in the cordon's mark, so that a wait before a
// restart of the agent counts. Calls `hold` with what delays the drain, and with nothing at the end.
boost::asio::awaitable<void> leave_load_balancers(const Context& context,
                                                  std::function<void(std::optional<HoldUp>)> hold);
// Removes the exclusion, with retries until it succeeds or until the Node has to be read again.
boost::asio::awaitable<void> return_to_load_balancers(const Context& context);

// Keeps track of whether the cordon of a drain is in force, and detects that another client has removed it. Pure.
class DrainCordon {
 public:
  // If `stood` is true, the cordon was in force before, for example before a restart of the agent.
  explicit DrainCordon(bool stood) : seen_(stood) {}

  // Records that the server has accepted the drain's cordon.
  void accept() { accepted_ = true; }
  bool accepted() const { return accepted_; }
  // Returns true if another client has made the node schedulable. `unschedulable` is that field of the known Node. The
  // known Node may be older than the cordon, so a schedulable Node counts only if an earlier one had the cordon. The
  // agent's watch may have missed the cordon; therefore the diagnosis of the drain counts, too: `diagnosed`, see
  // uncordoned_meanwhile().
  bool lost(bool unschedulable, bool diagnosed);

 private:
  bool accepted_ = false;
  bool seen_;  // the known state of the Node has shown the cordon
};

// Runs the state. One object for each time that the node enters it.
class Draining {
 public:
  // `status` receives the events of the drain, and its function `changed` wakes the activity.
  Draining(const Context& context, GateWatch& gates, OwnSlot& slot, Hooks& hooks, RemainingPods& pods,
           DrainStatus& status);

  // Returns Event::drained, or Event::update_due, only if the drain has succeeded and the hooks of both points have
  // passed.
  boost::asio::awaitable<Decision> run();
  // The diagnoses of the running drain; empty if none runs.
  Findings findings() const { return drain_ ? drain_->diagnoses() : Findings(); }

 private:
  boost::asio::awaitable<void> watched(TaskGroup& group);
  // Returns whether the node holds its slot; retries until that is known. If the node does not hold it, ends the state
  // with Event::turn_lost.
  boost::asio::awaitable<bool> confirm_slot();
  boost::asio::awaitable<void> begin_with_slot();
  boost::asio::awaitable<void> until_slot_confirmed();
  boost::asio::awaitable<void> install_update();
  // Downloads the updates that are installed after the drain, while the pods terminate.
  boost::asio::awaitable<void> download_updates();
  boost::asio::awaitable<void> until_installed();
  boost::asio::awaitable<void> drain();
  boost::asio::awaitable<HookResult> pass_hooks(HookPoint point);
  // Checks whether another client has removed the cordon, which ends the state. Returns true if the activity has ended.
  bool interrupted();
  boost::asio::awaitable<TimePoint> show(TimePoint shown_last);
  bool learn_from_drain();

  const Context& context_;
  GateWatch& gates_;
  OwnSlot& slot_;
  Hooks& hooks_;
  RemainingPods& pods_;
  DrainStatus& status_;

  // Each step begins when the one before has succeeded.
  enum class Step { confirming_slot, installing, draining, drained };
  Step step_ = Step::confirming_slot;
  DrainCordon cordon_;
  std::unique_ptr<drain::Drain> drain_;
  std::optional<HoldUp> held_up_;  // what delays the drain before the first eviction
};

}  // namespace haulout::agent
