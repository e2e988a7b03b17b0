// The agent's use of the gates: it asks them, waits at closed gates until something changes, and gives an update up
// when a gate requires that. All coroutines are cancellable. Borrows what it is given. One thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "agent/lifecycle/context.hpp"
#include "agent/lifecycle/reboot_need.hpp"

namespace haulout::agent {

class GateWatch {
 public:
  GateWatch(boost::asio::any_io_executor executor, const Context& context, const RebootNeed& need);

  // While the need is unknown, the answer is one closed gate, unless a person requests the reboot.
  boost::asio::awaitable<GateAnswer> ask(GateQuestion::When when);
  // Returns the decision to give up if a closed gate gives up the update that is under way; nothing if none does. An
  // error means that this is unknown.
  Task<std::optional<Decision>> given_up();

  // What other clients may change about the question for gates and slots: labels of the Node (which name its pool and
  // zone), annotations and cordons of people, and the need.
  struct Asked {
    std::map<std::string, std::string> words{};
    Pending pending{};
    bool operator==(const Asked&) const = default;
  };
  Asked asked_now() const;
  // Returns when the gates have changed, when the question differs from `asked`, at `until`, or when the Node has to be
  // read again. The agent's own writes to its Node and the kubelet's reports do not end the wait.
  boost::asio::awaitable<void> wait(Asked asked, TimePoint until);

  // A child of an activity that waits: wakes it when the gates have changed. Ends only by cancellation.
  boost::asio::awaitable<void> follow();
  // Whether follow() has seen a change since forget_change().
  bool changed() const { return changed_; }
  void forget_change() { changed_ = false; }

  // A child of an activity: interrupts it when a gate gives the update up.
  boost::asio::awaitable<void> follow_pauses();
  // The Node may have changed: follow_pauses() asks again.
  void node_changed() { news_.notify(); }

 private:
  boost::asio::awaitable<void> until_asked_anew(Asked asked, TimePoint until);
  boost::asio::awaitable<void> give_up_when_paused();

  const Context& context_;
  const RebootNeed& need_;
  Notifier news_;  // change of the gates or of the Node, for follow_pauses()
  bool changed_ = false;
};

}  // namespace haulout::agent
