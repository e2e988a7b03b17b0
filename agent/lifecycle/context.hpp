// What every state of the agent uses: ports, options, the current record, the view of the Node, the writer of the Node
// and the activity. A state gets everything else through its own constructor.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <optional>
#include <string>

#include "agent/lifecycle/agent.hpp"
#include "agent/lifecycle/node_view.hpp"
#include "agent/node/record.hpp"
#include "agent/node/state.hpp"
#include "k8s/client.hpp"
#include "retry/notifier.hpp"

namespace haulout::agent {

// The event that ends a state, with its reason and its message. The coroutine of the state returns it, or another
// coroutine of the agent passes it to Activity::interrupt().
struct Decision {
  Event event{};
  std::string cause{};    // reason of a degradation or of a failed attempt; empty if the event needs none
  std::string message{};  // one sentence; empty if the event needs none
  bool operator==(const Decision&) const = default;
};
// Returns the decision for a node that another client has made schedulable during its update.
Decision cordon_lost();

// The activity is the work of the agent's current state. It ends with a decision, or without one if the Node has to be
// read again. The other coroutines of the agent use this object to wake the activity or to end it. One thread.
class Activity {
 public:
  // interrupt() and interrupt_to_reload() call `remove_ready_file` at once. Borrows the clock.
  Activity(boost::asio::any_io_executor executor, Clock& clock, std::function<void()> remove_ready_file);

  // Begins the activity of a state: discards the decision of the last state.
  void begin() { decision_.reset(); }

  // Stores the decision, which ends the activity. The latest decision counts, because it rests on the newest facts.
  // Several coroutines may decide before the activity has ended: for example, while a hook still runs, a person sets a
  // pause, and then the slot is lost. The order changes only which reason is shown and whether the next attempt must
  // wait. A coroutine whose result follows from an earlier decision (such as the end of a cancelled drain) must not
  // decide after it.
  void decide(Decision decision) { decision_ = std::move(decision); }
  // Stores the decision and ends the activity at once: removes the ready file, and calls the function of
  // on_interrupt().
  void interrupt(Decision decision);
  // Sets a function that interrupt() also calls. The caller resets it (null) before it destroys what the function uses.
  void on_interrupt(std::function<void()> stop) { stop_ = std::move(stop); }
  const std::optional<Decision>& decision() const { return decision_; }

  // Ends the activity without a decision, because the Node was deleted or replaced, or because another client has
  // changed its record. Decisions do not count until reloading() is called, when the Node is read again.
  void reload() { must_reload_ = true; }
  // Like reload(), and also removes the ready file and wakes the activity: the last proof was about the earlier Node.
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

class NodeWriter;

// Time limit of one request to the API server or to the machine.
inline constexpr Duration request_timeout = std::chrono::seconds(30);
// How often the agent polls something for which there is no watch.
inline constexpr Duration look_interval = std::chrono::seconds(10);
// Backoff for steps that must succeed eventually.
inline constexpr BackoffOptions patience{std::chrono::milliseconds(500), 2.0, std::chrono::seconds(30),
                                         BackoffOptions::Jitter::equal};
// Backoff for requests during which the update stands still, such as the confirmation of the slot.
inline constexpr BackoffOptions eager_patience{std::chrono::seconds(1), 2.0, std::chrono::seconds(30),
                                               BackoffOptions::Jitter::equal};

// All members are borrowed and must outlive every state.
struct Context {
  const AgentParts& parts;
  const AgentOptions& options;
  k8s::Client& client;
  Clock& clock;
  Rng& rng;
  Record& record;  // a state changes it, and the writer shows it
  Activity& activity;
  NodeView& view;
  NodeWriter& writer;

  const k8s::Node& node() const { return view.node(); }
  // The machine has booted since the record was written.
  bool rebooted() const { return record.boot_id != view.boot_id(); }

  // The agent installs updates, and does so between the drain and the reboot.
  bool installs_after_drain() const { return parts.updater && !options.stages_first; }

  TimePoint now() const { return clock.now(); }
  WallTime wall() const { return clock.wall_now(); }
  TimePoint within(Duration limit) const { return now() + limit; }
  // Converts wall time to a deadline that is at most `at_most` away, because the wall clock may have jumped.
  TimePoint at(WallTime when, Duration at_most) const {
    const auto left = std::chrono::duration_cast<Duration>(when - wall());
    return now() + std::clamp(left, Duration::zero(), at_most);
  }
  boost::asio::awaitable<void> pause(Duration time) const { return clock.sleep_until(within(time)); }
  // The id of a new run.
  std::string new_run() const { return fmt::format("{}.{:x}", options.node, wall().time_since_epoch().count()); }
};

// The result of patch_own_node(). If neither member is set, the patch was written.
struct PatchedNode {
  bool replaced = false;            // the answer is about another Node of this name
  std::optional<Error> conflict{};  // another client has changed the Node meanwhile; the Node was read again instead
};
// Sends a merge patch of the agent's Node that is guarded by its resourceVersion. After a conflict reads the Node. The
// view learns the Node of the answer, unless that is another Node. `limit` is that of each request. Fails with the
// error of the request. Cancellable. Borrows the context.
Task<PatchedNode> patch_own_node(const Context& context, std::string patch, Duration limit);

}  // namespace haulout::agent
