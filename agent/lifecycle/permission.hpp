// What permits an update: the gates and the node's slot. The agent gives the update up when it loses one of them. All
// coroutines are cancellable. Borrows its arguments. One thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "agent/lifecycle/context.hpp"
#include "agent/lifecycle/reboot_need.hpp"

namespace haulout::agent {

// Evaluates the gates for the states of the agent: asks them, waits at closed gates until something changes, and
// decides to give an update up if a gate requires that.
class GateWatch {
 public:
  GateWatch(boost::asio::any_io_executor executor, const Context& context, const RebootNeed& need);

  // Evaluates all gates. If it is unknown whether anything is needed, and no person requests a reboot, returns instead
  // one closed gate with the reason; but not for `under_way`.
  boost::asio::awaitable<GateAnswer> ask(GateQuestion::When when);
  // Returns the decision to give the current update up if a closed gate requires it; nothing otherwise. Fails if the
  // gates cannot be evaluated.
  Task<std::optional<Decision>> given_up();

  // Returns when the need is known, for gates that depend on the version that waits. Not while another coroutine waits
  // for the activity.
  boost::asio::awaitable<void> need_known() const { return need_.first_answer(); }

  // The parts of the question for gates and slots that other clients may change: labels of the Node (they name its pool
  // and zone), annotations and cordons of people, and the need.
  struct Asked {
    std::map<std::string, std::string> words{};
    Pending pending{};
    bool requested = false;
    bool operator==(const Asked&) const = default;
  };
  Asked asked_now() const;
  // Returns when the gates have changed, when asked_now() differs from `asked`, at `until`, or when the Node has to be
  // read again. The agent's own writes to its Node and the kubelet's status updates do not end the wait.
  boost::asio::awaitable<void> wait(Asked asked, TimePoint until);

  // Runs as a child of an activity that waits, and wakes it when the gates have changed. Ends only by cancellation.
  boost::asio::awaitable<void> follow();
  // Returns true if follow() has seen a change since forget_change().
  bool changed() const { return changed_; }
  void forget_change() { changed_ = false; }

  // Runs as a child of an activity, and interrupts it when a gate requires that the update is given up.
  boost::asio::awaitable<void> follow_pauses();
  // Makes follow_pauses() evaluate the gates again, because the Node may have changed.
  void node_changed() { news_.notify(); }

 private:
  boost::asio::awaitable<void> until_asked_anew(Asked asked, TimePoint until);
  boost::asio::awaitable<void> give_up_when_paused();
  // With --ramp: returns the decision to give the update up if it leads to another version than the one for which the
  // node has its slot. The waves of that version may not permit it.
  std::optional<Decision> version_changed() const;

  const Context& context_;
  const RebootNeed& need_;
  Notifier news_;  // change of the gates or of the Node, for follow_pauses()
  bool changed_ = false;
};

// The slot of the agent's node: stores its name, detects its loss and releases it.
class OwnSlot {
 public:
  explicit OwnSlot(const Context& context) : context_(context) {}

  // The name of the slot that was taken last, for the record.
  const std::string& taken() const { return taken_; }
  // The version for which it was taken.
  const std::string& version() const { return version_; }
  void take(std::string slot, std::string version) {
    taken_ = std::move(slot);
    version_ = std::move(version);
  }

  // Runs as a child of an activity for which the node holds its slot: wakes the activity when slots change, and
  // interrupts it when the slot is lost. Ends only by cancellation.
  boost::asio::awaitable<void> follow();
  // Releases the slot, with retries until it succeeds or until the Node has to be read again.
  boost::asio::awaitable<void> release();

 private:
  const Context& context_;
  std::string taken_, version_;
};

}  // namespace haulout::agent
