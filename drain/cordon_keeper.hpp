// The cordon of a drain: sets it, remembers whether it is the drain's own, and takes it back if the drain ends without
// success. If the answer to a change was lost, finds out whether the change took effect. Borrows the session.
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

  // The Node as it was read first, before the drain changes anything.
  void found(const k8s::Node& node);
  // The Node as it is now. For the report.
  void seen(const k8s::Node& node);

  // Cordons the Node, which was last read as `known`. Returns the Node after that. Returns nullopt if the drain has
  // ended: the cordon failed, or the Node was deleted or replaced. Cancellable.
  boost::asio::awaitable<std::optional<k8s::Node>> set(k8s::Node known);
  // Takes the drain's own cordon back if the drain has ended without success and the options ask for it. Cancellable.
  boost::asio::awaitable<void> restore();

  // Since when the node takes no pods, as far as the drain has seen.
  TimePoint in_force_since() const { return in_force_since_; }
  // The node took pods for a while, and takes none from now on.
  void begins_again() { in_force_since_ = session_.now(); }
  CordonReport report() const;

 private:
  enum class Change { known, requested };  // requested: a change was requested, and its effect is not known

  // Keeps `change_` at `requested` if the change failed but may have taken effect: the response to one of the tries may
  // be lost, whatever the last try returned.
  Task<CordonChange> change(std::string what, std::function<Task<CordonChange>(TimePoint)> attempt);
  boost::asio::awaitable<void> undo_unanswered();

  Session& session_;
  CordonReport report_;
  bool ours_ = false;
  Change change_ = Change::known;
  TimePoint in_force_since_{};
};

}  // namespace haulout::drain
