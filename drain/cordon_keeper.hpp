// The cordon of a drain. Cordons the Node, records whether the cordon is the drain's own, and removes its own cordon if
// the drain fails. If the response to a change was lost, reads the Node to find out whether the change took effect.
// Borrows the session.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "drain/cordon.hpp"
#include "drain/session.hpp"

namespace haulout::drain {

class CordonKeeper {
 public:
  explicit CordonKeeper(Session& session) : session_(session) {}

  // Records the Node as it was read first, before the drain changes anything.
  void found(const k8s::Node& node);
  // Records the Node as it is now, for the report.
  void seen(const k8s::Node& node);

  // Cordons the Node, which was last read as `known`. Returns the Node after that. Returns nullopt if the drain has
  // ended: the cordon failed, or the Node was deleted or replaced. Cancellable.
  boost::asio::awaitable<std::optional<k8s::Node>> set(k8s::Node known);
  // Removes the drain's own cordon if the drain has ended as `blocked` or `failed` and the option
  // restore_cordon_on_failure is set. Cancellable.
  boost::asio::awaitable<void> restore();

  // Returns the time since which the node has been cordoned, as far as the drain knows.
  TimePoint in_force_since() const { return in_force_since_; }
  // Records that the node was schedulable for a while, and is cordoned from now on.
  void begins_again() { in_force_since_ = session_.now(); }
  CordonReport report() const;

 private:
  enum class Change { known, requested };  // requested: a change was requested, and its effect is not known

  // Sends the change, and repeats it after transient failures. Leaves `change_` at `requested` if the change failed but
  // may have taken effect, because the response to one of the requests was lost.
  Task<CordonChange> change(std::string what, std::function<Task<CordonChange>(TimePoint)> attempt);
  boost::asio::awaitable<void> undo_unanswered();

  Session& session_;
  CordonReport report_;
  bool ours_ = false;
  Change change_ = Change::known;
  TimePoint in_force_since_{};
};

}  // namespace haulout::drain
