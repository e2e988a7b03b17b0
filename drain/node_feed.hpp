// The feeds of the Node and of its pods.
//
// NodeFeed watches the Node, or reads it repeatedly if watching is forbidden, and reads it to confirm what the watch
// shows. It pauses the pipeline while the node is schedulable. Borrows session, pipeline and cordon.
#pragma once

#include <memory>
#include <optional>

#include "drain/cordon_keeper.hpp"
#include "drain/diagnoses.hpp"
#include "drain/feed.hpp"
#include "drain/pipeline.hpp"
#include "drain/session.hpp"
#include "k8s/reflector.hpp"

namespace haulout::drain {

class NodeFeed {
 public:
  NodeFeed(Session& session, Pipeline& pipeline, CordonKeeper& cordon);

  // found() records the Node as it was read first; cordoned() records it as it is after the cordon.
  void found(k8s::Node node);
  void cordoned(k8s::Node node);
  // Records the Node as it is now; nullptr: it was deleted.
  void see(const k8s::Node* node);
  const k8s::Node& node() const { return node_; }

  // Reads the Node and records the answer; 404 is an answer: the Node was deleted. Does not record it if the watch has
  // delivered a newer state meanwhile. Returns false if the answer is 404 but the watch delivered an event meanwhile:
  // then it is unknown which of the two is newer, and the caller must read again. Fails with the error of the request.
  // Cancellable.
  Task<bool> read();
  // Watches the Node. Ends only by cancellation.
  boost::asio::awaitable<void> follow();
  void close() { view_.reset(); }

  // Records a late pod. On a cordoned node it may mean that the Node is schedulable again or was replaced, and that the
  // view of the Node has stopped without an error. So look() reads the Node; until the answer no eviction may be sent.
  void pod_came_late() { ++late_pods_; }
  void look(TaskGroup& group);
  bool in_doubt() const { return doubt_.runs(); }

  bool gone() const { return facts_.gone; }
  bool unschedulable() const { return facts_.unschedulable; }
  // Returns what this feed knows of the input of the diagnoses. Findings adds `pods_error` and the times.
  const NodeFacts& facts() const { return facts_; }

 private:
  boost::asio::awaitable<void> poll();
  boost::asio::awaitable<void> doubt();

  Session& session_;
  Pipeline& pipeline_;
  CordonKeeper& cordon_;
  k8s::Node node_;
  NodeFacts facts_;
  std::unique_ptr<k8s::Reflector<k8s::Node>> view_;
  bool list_forbidden_ = false;
  std::size_t events_ = 0;     // number of changes that the view has reported
  std::size_t late_pods_ = 0;  // number of late pods so far
  // Number of late pods that were recorded before the last confirmed read of the Node.
  std::size_t late_pods_settled_ = 0;
  SingleTask doubt_;
};

// Watches the node's pods from the list of the plan on, lists them again if a pod is parked or terminating for long,
// and passes every change to the pipeline. Borrows session, pipeline and node.
class PodsFeed {
 public:
  PodsFeed(Session& session, Pipeline& pipeline, NodeFeed& node)
      : session_(session), pipeline_(pipeline), node_(node) {}

  // Sets the list from which the watch starts.
  void listed(k8s::List<k8s::Pod> list) { listed_ = std::move(list); }
  // Watches the pods. Ends only by cancellation.
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
  // Returns the next time at which look() or watch_health() must run without an event; max() if there is none.
  TimePoint next_wake(TimePoint at) const;

 private:
  enum class Told { connected, disconnected };  // what the last emitted event said

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
