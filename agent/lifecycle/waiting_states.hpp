// The states in which the agent mostly waits: unknown, idle, pending and waiting (before the slot is taken), verifying
// and soaking (after the boot or the installation), and degraded. Each coroutine runs one state and returns the
// decision that ends it. It also returns when the agent has to read the Node again (Activity::must_reload()); the
// caller then ignores the decision. Cancellable.
#pragma once

#include <optional>

#include "agent/lifecycle/hooks.hpp"
#include "agent/lifecycle/permission.hpp"

namespace haulout::agent {

// Returns what the Node still lacks (see agent/node/readiness.hpp), as a text for people, if its last boot or
// installation was never verified and it waits for its next attempt: in `pending`, in `waiting`, and in a `degraded`
// that would uncordon it. Until that text is empty the node keeps its cordon, because nothing else keeps pods off a
// node that lacks a condition. In all other cases returns an empty text.
std::string lacks_since_last_boot(const Context& context);

// Runs the state `unknown`. It ends when the back end has answered, or when a person requests a reboot.
boost::asio::awaitable<Decision> wait_for_answer(const Context& context, RebootNeed& need);
// Runs the state `idle`. It ends when there is a reason to reboot or to install updates.
boost::asio::awaitable<Decision> wait_for_need(const Context& context, RebootNeed& need);
// Runs the state `pending`. It ends when all gates are open and the backoff after failed attempts is over. It also ends
// when nothing is needed any more, when the reboot limit forbids the reboot, or when an image cannot be written.
boost::asio::awaitable<Decision> wait_for_gates(const Context& context, RebootNeed& need, GateWatch& gates);

// Runs the state `waiting`: the agent asks for a slot, and again each time that slots change, while the gates are open.
// One object for each time that the node enters the state. Borrows its arguments.
class SlotQueue {
 public:
  SlotQueue(const Context& context, RebootNeed& need, GateWatch& gates, OwnSlot& slot)
      : context_(context), need_(need), gates_(gates), slot_(slot) {}
  boost::asio::awaitable<Decision> run();

 private:
  // Returns nothing if no slot is available yet; then `ask_again_` says whether to ask again at once.
  boost::asio::awaitable<std::optional<Decision>> ask(Backoff& backoff, GateWatch::Asked asked);
  // Returns true if there is a reason to drain. With --update=before-drain, an update that is not yet written to an
  // image is no reason.
  bool worth_a_slot() const { return context_.options.stages_first ? need_.reboot_wanted() : need_.wanted(); }
  // With --ramp: returns true if the update leads to another version than the one for which the last request was.
  bool version_changed() const { return context_.options.ramp && target() != version_; }
  std::string target() const { return need_.target(context_.options.stages_first); }
  void warn_without_version() const;
  boost::asio::awaitable<void> wait();
  boost::asio::awaitable<void> until_worth_asking(GateWatch::Asked before, TimePoint until);
  boost::asio::awaitable<void> follow_slots();

  const Context& context_;
  RebootNeed& need_;
  GateWatch& gates_;
  OwnSlot& slot_;
  bool ask_again_ = true;  // the answer may differ from the last one
  std::string version_;    // for which the last request for a slot was
};

// Runs the state `verifying`. It ends with Event::verified when the node is Ready, runs the expected version and has
// passed its hooks. It ends with Event::not_verified when the version was rolled back, when a hook fails, or at the
// deadline in the record.
boost::asio::awaitable<Decision> verify(const Context& context, RebootNeed& need, Hooks& hooks);
// Runs the state `soaking`. It ends when the soak time is over, the node is Ready and the hooks have passed; or when a
// hook fails then, or the machine has booted again.
boost::asio::awaitable<Decision> soak(const Context& context, Hooks& hooks);
// Runs the state `degraded`. It ends when the cause is resolved, or when a person requests another attempt. It also
// ends when nothing is needed any more (Event::not_needed), when the reboot limit permits the reboot again, or when the
// machine has booted again (Event::boot_changed).
boost::asio::awaitable<Decision> stay_degraded(const Context& context, RebootNeed& need, GateWatch& gates,
                                               Hooks& hooks);

}  // namespace haulout::agent
