// The feed of the Node: its watch, reads instead of it where watching is forbidden, and reads that confirm what the
// watch shows. Pauses the pipeline while the node takes pods. Borrows session, pipeline and cordon.
#pragma once

#include <memory>

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

  // The Node as it was read first, and as it is after the cordon.
  void found(k8s::Node node);
  void cordoned(k8s::Node node);
  // The Node as it is now; nullptr: it was deleted.
  void see(const k8s::Node* node);
  const k8s::Node& node() const { return node_; }

  // Reads the Node. Returns true if what the drain then knows of it is at least as new as the server's answer. Returns
  // false if the server has no such Node, but its watch delivered an event meanwhile. Fails as the request fails; a
  // Node that does not exist is no failure. Cancellable.
  Task<bool> read();
  // Follows the Node until it is cancelled.
  boost::asio::awaitable<void> follow();
  void close() { view_.reset(); }

  // A late pod on a cordoned node may mean that the Node is schedulable again or was replaced, and that the view of the
  // Node has stopped without an error. So the Node is read. No eviction may be sent until then.
  void pod_came_late() { ++late_pods_; }
  void look(TaskGroup& group);
  bool in_doubt() const { return doubt_.runs(); }

  bool gone() const { return facts_.gone; }
  bool unschedulable() const { return facts_.unschedulable; }
  // Without `pods_error` and the clocks.
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
  std::size_t events_ = 0;             // number of changes that the view has reported
  std::size_t late_pods_ = 0;          // number of late pods so far
  std::size_t late_pods_settled_ = 0;  // those that came before the last confirmed read of the Node
  SingleTask doubt_;
};

}  // namespace haulout::drain
