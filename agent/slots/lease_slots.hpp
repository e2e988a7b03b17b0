// Slots as Leases in the agent's namespace. A pool has as many slots as it may have unavailable nodes. If zones are
// limited, too, each zone of the pool has slots of its own. See slot_rules.hpp for the rules, and agent/ports/slots.hpp
// for the port.
//
// take() creates the Lease of the zone by POST, then that of the pool. Of several nodes that try at the same time, the
// API server lets only one create a name. take() then lists all Leases again, and reads its own once more after a
// second, because the garbage collector deletes at once a Lease whose Node does not exist any more. release()
// sends a DELETE with the UID and resourceVersion that it read, for the zone's Lease last. The agent sends no PUT,
// since that would create a deleted Lease again, and it does not renew Leases, since a slot does not expire.
//
// When a slot becomes free, the load on the API server does not grow with the number of waiting nodes. Each agent sees
// the free slot on a watch, sleeps for a random time, which is longer if more nodes wait, and checks the watch again
// before it sends a request. If one or two nodes are unavailable without a slot, the agent watches them, too. The agent
// polls for all other changes that no Lease shows, more rarely if more nodes wait.
//
// If a gate opens for all agents of a large cluster, all of them begin to wait at the same moment. Therefore an agent
// that begins to wait lists only the Leases, sleeps for a random time, lists them again, and lists the Nodes only if a
// slot is free then. So the number of agents that list the Nodes grows with the number of slots, and not with that of
// agents. With waves or an order each agent needs the Nodes, but they list them one after another.
//
// With waves (waves.hpp) the watch on the Leases shows when a wave may be over: a node writes its record before it
// releases its slot. If the wave is over provided that this node has come back well, the agent reads its Node, and only
// then takes a slot, so that many waiting agents do not list all Nodes in vain. Only the poll notices an attempt that
// was given up in the middle of a wave, and a node without a slot that is well again. take() lists the Leases before
// the Nodes, and again after them: a node that releases its slot in between is in one of the lists.
//
// With an order (roll_out_order.hpp) a node takes a free slot only if no other node that waits goes before it. No Node
// shows whether its agent has died, so each agent measures how long the first one in the line has left a free slot to
// the others, and passes it over after `order_patience`.
//
// Only the holder field decides which node has a slot. So a node finds its slot again even if its labels or the options
// have changed. A slot in another namespace does not count as held, but release() deletes its Lease there (see
// remember()).
//
// Fails with the errors of k8s::Client; with Errc::invalid if the list of the pool's nodes does not have this Node, if
// the Node was replaced, or as groups_of() does; with Errc::timeout if a deleted Lease does not disappear. All
// coroutines are cancellable.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "agent/node/pool.hpp"
#include "agent/ports/slots.hpp"
#include "agent/slots/line_patience.hpp"
#include "agent/slots/slot_rules.hpp"
#include "k8s/client.hpp"
#include "k8s/reflector.hpp"
#include "retry/backoff.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

struct LeaseSlotsOptions {
  std::string ns = "haulout";
  SlotGrouping grouping{};
  // Returns how many nodes of a group (pool or zone) may be unavailable, from the number of its nodes.
  std::function<std::size_t(std::size_t nodes)> limit = [](std::size_t) { return std::size_t{1}; };
  // Returns the Nodes that match a label selector. Unset: the API server is asked. A rehearsal, which simulates many
  // agents in one process, lets them share one list.
  std::function<Task<std::vector<ListedNode>>(std::string selector, TimePoint deadline)> nodes{};
  // The shortest time between polls for changes that no watch shows. Unset: two minutes, and less if a watch shows that
  // the message about the holders is out of date.
  std::optional<Duration> look_every{};
  // Approximate number of Nodes of the cluster, at least that of the pool. 0: not known.
  std::size_t cluster_nodes = 0;
  std::vector<MaxUnavailable> ramp{};  // sizes of the waves of a roll-out, see waves.hpp; empty: no waves
  std::size_t halt_after = 0;          // see RollOut::halt_after
  RollOutOrder order{};
};

class LeaseSlots final : public Slots {
 public:
  // Borrows client, rng and the node's identity.
  LeaseSlots(k8s::Client& client, Rng& rng, const OwnNode& node, LeaseSlotsOptions options);

  std::string name() const override { return "lease"; }
  void remember(const std::string& slot) override;
  void aim_at(const std::string& version) override { version_ = version; }
  Task<Turn> take(TimePoint deadline) override;
  Task<Turn> confirm(TimePoint deadline) override;
  Task<> release(TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;

 private:
  // Returns a most-recent list of all Leases of slots in the namespace, including those of unlisted_.
  Task<std::vector<k8s::Lease>> list(TimePoint deadline);
  // For a node that begins to wait together with many others, without waves and without an order. Returns the refusal
  // if the Leases alone show that no slot is free. Otherwise returns nothing.
  Task<std::optional<Turn>> ask_leases(TimePoint deadline);
  // Lists Nodes and Leases. Returns a view for each group of this node, in the order in which slots are taken.
  Task<std::vector<GroupView>> look(TimePoint deadline);
  // Returns the roll-out of version_ in the pool. `earlier`: Leases of all pools, listed before the Nodes.
  RollOut roll_out(GroupView pool, const std::vector<PoolNode>& members, std::vector<k8s::Lease> earlier) const;
  // Creates Leases in the given order. Returns nothing if all were created. Otherwise returns why one could not be
  // created; those before it exist then.
  Task<std::optional<std::string>> post(std::vector<k8s::Lease> slots, TimePoint deadline);
  // Returns why a Lease exists although no list contains it: another node was faster, or the Lease lacks the label by
  // which it would be listed. In the latter case the Lease counts from now on.
  Task<std::string> look_at_taken(std::string name, TimePoint deadline);
  // Deletes Leases that this node holds but that belong to none of its current groups.
  Task<> give_back_strays(const std::vector<GroupView>& views, TimePoint deadline);
  // Return most-recent lists of the Leases that this node holds, in the order in which they are released: those that
  // list() returns, and those in the namespace of left_behind_.
  Task<std::vector<k8s::Lease>> own_here(TimePoint deadline);
  Task<std::vector<k8s::Lease>> own_left_behind(TimePoint deadline);
  // Returns a random time for the next poll: between `at_least` and twice `at_least` from now. If many nodes wait, the
  // upper bound is later.
  TimePoint next_look(Duration at_least);
  // Why this node gets no slot, or must release it.
  struct Obstacle {
    std::string why;
    std::string reason = reason::waiting_for_slot;
  };
  // Returns why the present wave does not permit this node to have a slot; nothing if it does.
  std::optional<Obstacle> refused_by_wave(const std::vector<GroupView>& views) const;
  // Returns the result of a take() that found no slot, and stores the views for changed().
  Turn refuse(std::vector<GroupView> views, Obstacle obstacle);
  // Returns true if a slot is free, by the views in refused_ with the given Leases. Nodes named in `back` are available
  // again. With `well`, nodes that have released their slots since then count as nodes that have come back well;
  // otherwise they keep their places in the wave.
  bool has_room(const std::vector<k8s::Lease>& slots, const std::set<std::string>& back, bool well) const;
  // A node that is unavailable without a slot, and the watch that shows when it is available again.
  struct FollowedNode {
    OutNode seen;  // as of the last look()
    std::unique_ptr<k8s::Reflector<k8s::Node>> view;
  };
  FollowedNode follow(OutNode node, Notifier& moved);
  boost::asio::awaitable<void> until_own_changes(const k8s::Reflector<k8s::Lease>& view, Notifier& moved);
  boost::asio::awaitable<void> until_room(const k8s::Reflector<k8s::Lease>& view,
                                          const std::vector<FollowedNode>& nodes, Notifier& moved);

  k8s::Client& client_;
  Clock& clock_;
  Rng& rng_;
  const OwnNode& node_;
  LeaseSlotsOptions options_;
  // A slot that was taken in another namespace, before the agent's namespace was changed.
  struct LeftBehind {
    std::string ns, name;
  };
  std::optional<LeftBehind> left_behind_;
  std::string version_;  // to which the update leads, see aim_at()
  OwnPool pool_;         // as of the last look(); its name is empty if it is not known yet
  // Leases that have the name of a slot but no pool label, because a person created them or removed the label. Neither
  // the list nor the watch shows them. Still these slots are taken, because a second Lease of that name cannot exist.
  std::vector<k8s::Lease> unlisted_;
  // Nodes that may ask for a slot when one becomes free, by the last look(): those in the state `waiting`. With an
  // order only those that are not far behind this one.
  std::int64_t waiting_ = 0;
  LinePatience patience_;
  std::map<std::string, std::string> own_seen_;  // Leases that this node holds: resourceVersion by UID
  // The views with which the last take() found no free slot. Each list() clears them.
  std::vector<GroupView> refused_;
  bool woken_ = false;        // changed() has returned since the last take(), after a random time
  TimePoint look_at_{};       // when changed() returns even if no slot becomes free
  bool looked_soon_ = false;  // the last request was refused because of a wave that was about to end
  Backoff in_vain_{BackoffOptions{std::chrono::milliseconds(500), 2.0, std::chrono::seconds(30)}};
  TimePoint vain_until_{};  // changed() reports a free slot no earlier than this
};

}  // namespace haulout::agent
