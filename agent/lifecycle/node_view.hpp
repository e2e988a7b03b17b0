// The newest state of the agent's Node that is known from its watch and from the answers to requests, and what it shows
// about the current boot of the machine.
//
// Node objects may arrive in any order: the watch may be ahead of the answer to a request, and the answer to a patch
// arrives before its watch event. The view goes back to an older state only if an answer or a list that was requested
// later shows it, for example after etcd was restored from a backup. Life (agent.cpp) owns the view. Borrows client and
// rng. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "agent/node/node_status.hpp"
#include "k8s/client.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

class NodeView {
 public:
  // Functions that the view calls. They must not destroy the view.
  struct Callbacks {
    std::function<void()> schedulable;    // the view has learned a state in which the node is schedulable
    std::function<void(bool same)> seen;  // see() was called; not `same`: the Node has another UID, and was not learned
    std::function<void()> deleted;        // the watch has reported that the Node was deleted
    std::function<void()> watch_reported;  // a batch of watch events has arrived, or the watch's health changed
  };

  NodeView(boost::asio::any_io_executor executor, k8s::Client& client, Rng& rng, std::string name, Callbacks callbacks);

  const k8s::Node& node() const { return node_; }
  const std::string& name() const { return name_; }

  // Takes over the answer to a request for the Node, also a Node with another UID. `news_before` is the value of news()
  // when the request was sent. If no other state was learned since, the answer counts as the newest state; otherwise it
  // counts unless it is older.
  void learn(k8s::Node node, std::uint64_t news_before);
  std::uint64_t news() const { return news_; }
  // Takes over a Node unless it is older than the known one, or another Node of the same name (another UID). Calls
  // Callbacks::seen in each case. `list_asked` is the time at which the list with this Node was requested; nothing if
  // the Node came by a watch event or as the answer to another request.
  void see(const k8s::Node& node, std::optional<TimePoint> list_asked = std::nullopt);
  // Watches the Node and passes each state to see(). Ends only by cancellation.
  boost::asio::awaitable<void> follow();
  // Returns after the next change of node(). One waiter. Cancellable.
  boost::asio::awaitable<void> changed();

  // The boot id that the agent reads from its machine.
  const std::string& boot_id() const { return boot_id_; }
  void set_boot_id(std::string boot_id) { boot_id_ = std::move(boot_id); }
  // Returns true if the Node is Ready and shows the boot id that the agent reads, or no boot id.
  bool kubelet_reports_this_boot() const;
  // Returns a status while the Node is Ready with a boot id other than the one that the agent reads: NodeNotReady at
  // first, because the kubelet may not have reported this boot yet, and later BootIdForeign. Returns nothing otherwise.
  // Moves `until` forward to the time at which the status has to be evaluated again.
  std::optional<Status> foreign_boot(TimePoint& until) const;
  // Since when the node has been seen unschedulable, by the server's clock.
  WallTime takes_no_pods_since() const { return takes_no_pods_since_; }

 private:
  void learn_unless_older(k8s::Node node);

  k8s::Client& client_;
  Rng& rng_;
  const std::string name_;
  Callbacks callbacks_;
  Notifier changed_;
  k8s::Node node_;
  std::uint64_t news_ = 0;  // number of states learned so far
  TimePoint learned_{};     // when the last state was learned
  std::string boot_id_;
  // Since when the kubelet has been Ready and has reported a boot id other than the agent's.
  std::optional<TimePoint> foreign_boot_since_;
  WallTime takes_no_pods_since_{};
};

}  // namespace haulout::agent
