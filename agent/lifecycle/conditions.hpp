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
  // When a failed write is repeated.
  struct Retry {
    Retry();
    void failed(Rng& rng, TimePoint now, const Error& error);
    void over();

    TimePoint at{};  // not before this time
    bool failing = false;
    Backoff errors, refusals;
  };

 public:
  Conditions(boost::asio::any_io_executor executor, const AgentParts& parts, Activity& activity, NodeView& view,
             const RebootNeed& need);

  // The Node shows this record and this status from now on. The conditions tell what is written, not what is only
  // decided.
  void shows(const Record& record, const Status& status);
  // The same, after the Node was read anew. It may be another Node.
  void take_over(const Record& record, const Status& status);

  // The proof that the node is drained, for the condition Drained. It holds from prove() until withdraw_proof(), which
  // is called after each loss, and when the work of a state ends, in which the agent watches the pods. A proof that was
  // under way during a withdrawal may have looked before what was lost, so it does not count: `doubts` is the value of
  // doubts() from before it.
  std::uint64_t doubts() const { return doubts_; }
  void prove(std::uint64_t doubts);
  void withdraw_proof();
  // Sets the time before which the update that the node waits for does not begin; nothing if no such time is known.
  void expect(std::optional<WallTime> not_before);

  // Makes the Node show what is true. Called with the duties of each state, and with each new reason. Makes one
  // attempt, and none while keep() repeats a failed one, or restores what others have changed. Never fails.
  boost::asio::awaitable<void> establish();
  // Called with each news of the Node and after each transition. Wakes keep() if something has to be written.
  void changed();
  // Runs as a child of the agent: writes what no state has written, repeats failed attempts and restores what others
  // have changed with growing backoffs, and sends the heartbeats. Withdraws the condition Drained at once: only a
  // Retry-After and the backoff of a failed withdrawal delay that. Does everything else after a moment, in which the
  // state itself may write it. Ends only by cancellation.
  boost::asio::awaitable<void> keep();

 private:
  std::vector<ToldCondition> told() const;
  // The patch after which the Node shows what is true. Nothing, if it does already, or is read again first.
  std::optional<std::string> due(bool beat) const;
  bool is_due() const;  // due(false) returns a patch
  bool must_withdraw() const { return must_withdraw_drained(view_.node(), told()); }
  // Only the withdrawal of Drained is due: everything else waits for the Node to be read, or for a backoff.
  bool only_withdraws() const { return (activity_.must_reload() || writes_.failing) && must_withdraw(); }
  // Others have changed what the last successful request has written.
  bool others_write() const { return written_ && say_the_same(told(), *written_); }
  // Returns when keep() makes the next attempt, heartbeats aside.
  TimePoint next_write();
  boost::asio::awaitable<void> write(bool beat);
  Task<> attempt(bool beat);

  Clock& clock_;
  const AgentParts& parts_;
  Activity& activity_;
  NodeView& view_;
  const RebootNeed& need_;

  Notifier news_;
  Record record_;  // as the Node shows it
  Status status_;
  std::uint64_t doubts_ = 0;  // number of withdrawals
  bool proved_ = false;
  std::optional<std::optional<WallTime>> not_before_;  // empty until expect() was called
  bool writing_ = false;                               // an attempt is under way
  std::optional<std::vector<ToldCondition>> written_;  // what the last successful request has written
  bool may_show_drained_ = true;                       // this agent may have written Drained since it last removed it
  Retry writes_, withdrawals_;
  std::optional<TimePoint> write_at_, restore_at_;  // when keep() writes news, and what others have changed
  TimePoint restored_{};                            // when restore_at_ was last set
  Backoff others_;
};

}  // namespace haulout::agent
