// What the agent writes to its Node beside its record, each with a patch of its own: the annotations that ask
// autoscalers to leave the node alone (hold_patch() in agent/node/node_status.hpp), and the taint of a node that waits
// for its update (agent/node/waiting_taint.hpp). Best effort: nothing of the life cycle depends on it. A refusal is a
// warning, and each failed write is repeated in the background. Cancellable. Borrows the context. One thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "agent/lifecycle/context.hpp"
#include "agent/node/state.hpp"
#include "retry/backoff.hpp"
#include "retry/notifier.hpp"

namespace haulout::agent {

// Limits of everything that the agent writes to its Node beside its record; the conditions have them, too.
namespace side_write {
// Time limit of one request. Shorter than for requests on which the update depends, because the update waits for it.
inline constexpr Duration attempt_limit = std::chrono::seconds(10);
// Number of requests in a row after which an attempt ends: others write the Node all the time.
inline constexpr unsigned most_requests = 4;
inline constexpr BackoffOptions after_conflict{std::chrono::milliseconds(100), 2.0, std::chrono::seconds(1),
                                               BackoffOptions::Jitter::equal};
// The backoffs start again if nothing had to be done for this time. So a client that removes what the agent has written
// again and again does not make it write all the time.
inline constexpr Duration forgotten_after = std::chrono::minutes(30);
}  // namespace side_write

class SideWrite {
 public:
  // What is written.
  struct What {
    std::function<Duty()> duty;
    // Returns the patch that establishes this duty; nothing if no change is necessary.
    std::function<std::optional<std::string>(Duty)> patch;
    const char* reason;   // of the warning if it cannot be written
    std::string subject;  // for the warning: "the taint x of node n1", in plural if `plural`
    bool plural = false;
  };
  SideWrite(boost::asio::any_io_executor executor, const Context& context, What what);

  // Makes the Node show what its state requires. Called with the duties of each state, so that the drain begins with it
  // in place. Makes one attempt, with a time limit for each of its requests, and none while keep() repeats a failed
  // one. Never fails.
  boost::asio::awaitable<void> establish();
  // Called with each news of the Node. Wakes keep() if the Node does not show any more what it has to.
  void node_changed();
  // Runs as a child of the agent: repeats failed attempts with a growing backoff, and brings the mark up to date when
  // another client has changed what the agent has written. Ends only by cancellation.
  boost::asio::awaitable<void> keep();

 private:
  std::optional<std::string> due() const;
  boost::asio::awaitable<void> attempt();
  // Records the failure, and reports it when it occurs again: one refusal may pass, too.
  void note_failure(const Error& error);
  void note_success();

  const Context& context_;
  const What what_;
  Notifier news_;
  bool writing_ = false;   // an attempt is under way
  bool refused_ = false;   // the last attempt was refused, not only unsuccessful
  bool told_ = false;      // the failure was reported
  unsigned failures_ = 0;  // number of failed attempts in a row
  std::optional<std::chrono::milliseconds> retry_after_;
};

// Everything that the agent writes in this way. The functions are those of SideWrite.
class SideWrites {
 public:
  SideWrites(const boost::asio::any_io_executor& executor, const Context& context);

  boost::asio::awaitable<void> establish();
  void node_changed();
  boost::asio::awaitable<void> keep();

 private:
  const Context& context_;
  SideWrite hold_, taint_;
};

}  // namespace haulout::agent
