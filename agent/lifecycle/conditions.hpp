// The conditions of the agent on its Node (agent/node/lifecycle_conditions.hpp): keeps them true. Best effort: nothing
// of the life cycle depends on them, and each failed write is repeated in the background. Cancellable. Borrows its
// arguments. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/lifecycle/agent.hpp"
#include "agent/lifecycle/context.hpp"
#include "agent/lifecycle/reboot_need.hpp"
#include "agent/node/lifecycle_conditions.hpp"
#include "retry/backoff.hpp"
#include "retry/notifier.hpp"

namespace haulout::agent {

class Conditions {
 public:
  Conditions(boost::asio::any_io_executor executor, const AgentParts& parts, const AgentOptions& options,
             const Record& record, const Status& status, Activity& activity, NodeView& view, const RebootNeed& need);

  // The proof that the node is drained, for the condition Drained. It holds from prove() until withdraw_proof(), which
  // everything calls that removes the ready file because of a loss. A proof that was under way during a withdrawal may
  // have looked before what was lost, so it does not count: `doubts` is the value of doubts() from before it.
  std::uint64_t doubts() const { return doubts_; }
  void prove(std::uint64_t doubts);
  void withdraw_proof();
  // Sets the time before which the update that the node waits for does not begin; nothing if no such time is known.
  void expect(std::optional<WallTime> not_before) { not_before_ = not_before; }

  // Makes the Node show what is true. Called with the duties of each state, and with each new reason. Makes one
  // attempt, and none while keep() repeats a failed one. Never fails.
  boost::asio::awaitable<void> establish();
  // Called with each news of the Node and after each transition. Wakes keep() if something has to be written.
  void changed();
  // Runs as a child of the agent: writes what no state has written, repeats failed attempts with a growing backoff, and
  // sends the heartbeats. Withdraws the condition Drained at once, and does everything else after a moment, in which
  // the state itself may write it. Ends only by cancellation.
  boost::asio::awaitable<void> keep();

 private:
  std::vector<ToldCondition> told() const;
  std::optional<std::string> due(bool beat) const;
  // Returns the pause before keep() makes the next attempt.
  Duration pause();
  Task<> attempt(bool beat);
  void note(const Result<>& attempted);

  Clock& clock_;
  const AgentParts& parts_;
  const AgentOptions& options_;
  const Record& record_;
  const Status& status_;
  Activity& activity_;
  NodeView& view_;
  const RebootNeed& need_;

  Notifier news_;
  std::uint64_t doubts_ = 0;  // number of withdrawals
  bool proved_ = false;
  std::optional<WallTime> not_before_;
  bool writing_ = false;                // an attempt is under way
  std::optional<Error> trouble_;        // the error of the last attempt
  std::vector<ToldCondition> written_;  // what the last successful request has written
  TimePoint restored_{};                // when keep() last wrote that again
  Backoff errors_, refusals_, others_;
};

}  // namespace haulout::agent
