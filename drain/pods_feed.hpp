// The feed of the node's pods. Watches them from the list of the plan on, lists them again if a pod is parked or
// terminating for long, and passes every change to the pipeline. Borrows session, pipeline and node.
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

  // Sets the list from which the watch starts.
  void listed(k8s::List<k8s::Pod> list) { listed_ = std::move(list); }
  // Watches the pods until it is cancelled.
  boost::asio::awaitable<void> follow();
  void close() { view_.reset(); }
  // Processes the watch events that have arrived, without further delay.
  void read_on();

  // Reads the Node, and then lists the pods again. If the view of the pods has stopped, the view of the Node may have
  // stopped, too. The Node is read first, because the list can lead to evictions. Requires that follow() has started.
  // Cancellable.
  boost::asio::awaitable<void> doubt();
  // Starts doubt() if the view may be wrong about a pod (Pipeline::any_in_doubt()) or a pod has been parked for long.
  void look(TaskGroup& group);
  // Emits `disconnected` when the watch has been lost for `worth_a_word`, and `reconnected` when it works again.
  void watch_health();

  bool connected() const { return view_ && view_->health().connected; }
  // Returns why the view is not live; nullopt if it is live, or if there is no view.
  std::optional<Error> error() const { return view_ ? view_->health().error : std::nullopt; }
  // Returns the next time after `at` at which look() or watch_health() must run without an event.
  TimePoint next_wake(TimePoint at) const;

 private:
  enum class Told { connected, disconnected };  // by the last event that was emitted

  Session& session_;
  Pipeline& pipeline_;
  NodeFeed& node_;
  k8s::List<k8s::Pod> listed_;
  std::unique_ptr<k8s::Reflector<k8s::Pod>> view_;
  TimePoint disconnected_since_ = TimePoint::max();
  Told told_ = Told::connected;
  HeldLong held_;  // times how long pods have been parked, for any reason
  TimePoint doubt_not_before_{};
};

}  // namespace haulout::drain
