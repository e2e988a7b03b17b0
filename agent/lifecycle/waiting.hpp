// The states from the need for a reboot to the slot: unknown, idle, pending and waiting. All coroutines are
// cancellable. If the Node has to be read again they return a decision that does not count.
#pragma once

#include <optional>

#include "agent/lifecycle/gate_watch.hpp"
#include "agent/lifecycle/own_slot.hpp"

namespace haulout::agent {

// The state `unknown`: until the back end has answered, or a person requests a reboot.
boost::asio::awaitable<Decision> wait_for_answer(const Context& context, RebootNeed& need);
// The state `idle`: until there is a reason to reboot.
boost::asio::awaitable<Decision> wait_for_need(const Context& context, RebootNeed& need);
// The state `pending`: until all gates are open, and the backoff after failed attempts is over.
boost::asio::awaitable<Decision> wait_for_gates(const Context& context, RebootNeed& need, GateWatch& gates);

// The state `waiting`: the agent asks for a slot, and again each time that slots change, while the gates are open. One
// object for each time in the state. Borrows everything.
class SlotQueue {
 public:
  SlotQueue(const Context& context, RebootNeed& need, GateWatch& gates, OwnSlot& slot)
      : context_(context), need_(need), gates_(gates), slot_(slot) {}
  boost::asio::awaitable<Decision> run();

 private:
  // Returns nothing if there is no slot yet; then `ask_again_` says whether to ask again.
  boost::asio::awaitable<std::optional<Decision>> ask(Backoff& backoff, GateWatch::Asked asked);
  boost::asio::awaitable<void> wait();
  boost::asio::awaitable<void> until_worth_asking(GateWatch::Asked before, TimePoint until);
  boost::asio::awaitable<void> follow_slots();

  const Context& context_;
  RebootNeed& need_;
  GateWatch& gates_;
  OwnSlot& slot_;
  bool ask_again_ = true;  // the answer may differ from the last one
};

}  // namespace haulout::agent
