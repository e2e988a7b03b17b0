// The feed of the node's pods: a watch that starts from the list of the plan, and lists that check it if a pod waits or
// terminates for long. Passes every change to the pipeline. Borrows session, pipeline and node.
#pragma once

#include <memory>
#include <optional>

#include "drain/feed.hpp"
#include "drain/node_feed.hpp"
#include "drain/pipeline.hpp"
#include "drain/session.hpp"
#include "k8s/reflector.hpp"

namespace haulout::drain {

class PodsFeed {
 public:
  PodsFeed(Session& session, Pipeline& pipeline, NodeFeed& node)
      : session_(session), pipeline_(pipeline), node_(node) {}

  // The list from which the watch starts.
  void listed(k8s::List<k8s::Pod> list) { listed_ = std::move(list); }
  // Follows the pods until it is cancelled.
  boost::asio::awaitable<void> follow();
  void close() { view_.reset(); }
  // Reads the events that have arrived now.
  void read_on();

  // Reads the Node and then lists the pods again. If the view of the pods has stopped, the view of the Node may have,
  // too. The Node is read first, because the list can lead to evictions. Needs the view. Cancellable.
  boost::asio::awaitable<void> doubt();
  // Starts doubt() if a pod is in doubt or has waited for long.
  void look(TaskGroup& group);
  // Reports a view that is lost for a while, and its return.
  void watch_health();

  bool connected() const { return view_ && view_->health().connected; }
  // Why the view is not live; nothing if it is, or if there is none.
  std::optional<Error> error() const { return view_ ? view_->health().error : std::nullopt; }
  // The next time after `at` at which look() or watch_health() has something to do without an event.
  TimePoint next_wake(TimePoint at) const;

 private:
  enum class Told { connected, disconnected };  // what the observer was told last

  Session& session_;
  Pipeline& pipeline_;
  NodeFeed& node_;
  k8s::List<k8s::Pod> listed_;
  std::unique_ptr<k8s::Reflector<k8s::Pod>> view_;
  TimePoint disconnected_since_ = TimePoint::max();
  Told told_ = Told::connected;
  HeldLong held_;  // pods held for any reason
  TimePoint doubt_not_before_{};
};

}  // namespace haulout::drain
