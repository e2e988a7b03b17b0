// What the agent does in its current state, as others see it: they wake it, and they end it. It ends with a decision,
// or without one because the Node has to be read again. No I/O; one thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <optional>
#include <string>

#include "agent/node/state.hpp"
#include "retry/notifier.hpp"

namespace haulout::agent {

// How the activity of a state ends: the event, and why. A state returns it, and an interruption carries it.
struct Decision {
  Event event{};
  std::string cause{};    // reason of a degradation or of a failed attempt; empty if the event needs none
  std::string message{};  // likewise, as one sentence
  bool operator==(const Decision&) const = default;
};
// The decision that follows when another client has made the node schedulable during its update.
Decision cordon_lost();

class Activity {
 public:
  // `remove_ready_file` is called when the activity is interrupted, before anything else. Borrows the clock.
  Activity(boost::asio::any_io_executor executor, Clock& clock, std::function<void()> remove_ready_file);

  // Begins the activity of a state: nothing is decided.
  void begin() { decision_.reset(); }

  // Several coroutines may decide before the activity has ended: the loss of the slot may follow a pause while a hook
  // still runs. The latest decision counts, because it rests on the newest facts. Each decision ends the activity, so
  // the order changes only which cause people read and whether the next attempt must wait. A coroutine whose result
  // follows from an earlier decision, as the end of a drain does, must not decide after it.
  void decide(Decision decision) { decision_ = std::move(decision); }
  // Decides, and ends the activity at once: removes the ready file, and calls the function of on_interrupt().
  void interrupt(Decision decision);
  // Sets what interrupt() calls in addition. The caller resets it (null) before what it uses is gone.
  void on_interrupt(std::function<void()> stop) { stop_ = std::move(stop); }
  const std::optional<Decision>& decision() const { return decision_; }

  // The Node was deleted or replaced, or another client has changed its record: the activity ends, and what it decided
  // does not count. Only a new reading of the Node (reloading()) ends this state.
  void reload() { must_reload_ = true; }
  // Likewise, and removes the ready file and wakes the activity: the last proof was about the Node as it was.
  void interrupt_to_reload();
  void reloading() { must_reload_ = false; }
  bool must_reload() const { return must_reload_; }

  bool ended() const { return must_reload_ || decision_; }

  void wake() { changed_.notify(); }
  // Returns after wake(), at `until`, or at once if the Node has to be read again. One waiter. Cancellable.
  boost::asio::awaitable<void> wait(TimePoint until);

 private:
  Clock& clock_;
  std::function<void()> remove_ready_file_;
  std::function<void()> stop_;
  Notifier changed_;
  std::optional<Decision> decision_;
  bool must_reload_ = false;
};

}  // namespace haulout::agent
