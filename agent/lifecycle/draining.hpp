// The state `draining`: from the slot to the drained node. Cancellable. Borrows what it is given.
#pragma once

#include <memory>
#include <optional>

#include "agent/lifecycle/drain_status.hpp"
#include "agent/lifecycle/gate_watch.hpp"
#include "agent/lifecycle/hooks.hpp"
#include "agent/lifecycle/load_balancers.hpp"
#include "agent/lifecycle/own_slot.hpp"
#include "agent/lifecycle/proof.hpp"

namespace haulout::agent {

// Whether the cordon of a drain is in force, and whether another client has taken it away. Pure.
class DrainCordon {
 public:
  // `stood`: the cordon was in force before, for example before a restart of the agent.
  explicit DrainCordon(bool stood) : seen_(stood) {}

  // The server has accepted the drain's cordon.
  void accept() { accepted_ = true; }
  bool accepted() const { return accepted_; }
  // Returns true if another client has made the node schedulable. A Node without the cordon proves that only if an
  // earlier one had it, because the known state may be older than the cordon. The agent's own watch may have been
  // interrupted meanwhile. The drain knows since when the node has been cordoned, so its diagnosis counts, too:
  // `diagnosed`, see uncordoned_meanwhile().
  bool lost(bool unschedulable, bool diagnosed);

 private:
  bool accepted_ = false;
  bool seen_;  // the known state of the Node has shown the cordon
};

// One object for each time in the state.
class Draining {
 public:
  // `status` gets the events of the drain; its function `changed` wakes the activity.
  Draining(const Context& context, GateWatch& gates, OwnSlot& slot, Hooks& hooks, RemainingPods& pods,
           DrainStatus& status);

  // Returns Event::drained only if the drain has succeeded and the hooks of both points have passed.
  boost::asio::awaitable<Decision> run();
  // The diagnoses of the running drain; empty if none runs.
  Findings findings() const { return drain_ ? drain_->diagnoses() : Findings(); }

 private:
  boost::asio::awaitable<void> watched(TaskGroup& group);
  // Asks until it is known whether the node holds its slot. If it does not, decides Event::turn_lost.
  boost::asio::awaitable<bool> confirm_slot();
  boost::asio::awaitable<void> begin_with_slot();
  boost::asio::awaitable<void> until_slot_confirmed();
  boost::asio::awaitable<void> install_update();
  boost::asio::awaitable<void> until_installed();
  boost::asio::awaitable<void> drain();
  boost::asio::awaitable<HookResult> pass_hooks(HookPoint point);
  // Looks for the loss of the cordon, and returns true if the activity has to end.
  bool interrupted();
  boost::asio::awaitable<TimePoint> show(TimePoint shown_last);
  bool learn_leaked();

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
  std::optional<HoldUp> held_up_;  // before the first eviction
};

}  // namespace haulout::agent
