// The annotations by which the agent asks autoscalers to leave its node alone during the update (hold_patch() in
// agent/node/node_status.hpp). Best effort: nothing of the life cycle depends on them. A refusal is a warning, and each
// failed write is repeated in the background. Cancellable. Borrows the context. One thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "agent/lifecycle/context.hpp"
#include "retry/notifier.hpp"

namespace haulout::agent {

class AutoscalerHold {
 public:
  AutoscalerHold(boost::asio::any_io_executor executor, const Context& context);

  // Makes the Node show what its state requires. Called with the duties of each state, so that the drain begins with
  // the annotations in place. Makes one attempt, with a time limit for each of its requests, and none while keep()
  // repeats a failed one. Never fails.
  boost::asio::awaitable<void> establish();
  // Called with each news of the Node. Wakes keep() if the mark does not agree with the Node any more.
  void node_changed();
  // Runs as a child of the agent: repeats failed attempts with a growing backoff, and brings the mark up to date when
  // another client has changed one of the annotations. Ends only by cancellation.
  boost::asio::awaitable<void> keep();

 private:
  std::optional<std::string> due() const;
  boost::asio::awaitable<void> attempt();
  // Records the failure, and reports it when it occurs again: one refusal may pass, too.
  void note_failure(const Error& error);
  void note_success();

  const Context& context_;
  Notifier news_;
  bool writing_ = false;   // an attempt is under way
  bool refused_ = false;   // the last attempt was refused, not only unsuccessful
  bool told_ = false;      // the failure was reported
  unsigned failures_ = 0;  // number of failed attempts in a row
  std::optional<std::chrono::milliseconds> retry_after_;
};

}  // namespace haulout::agent
