// Turns as Leases in the agent's namespace: as many per pool as nodes may be out at a time, and where zones are
// limited, too, as many per zone. See slot_rules.hpp for who may hold one, and slots.hpp for the port.
//
// Taken by POST, which one of many wins, the zone's before the pool's; looked at once more with all others; confirmed
// by a read a second later, since the garbage collector takes away at once what a Node that has gone would hold.
// Released by DELETE of exactly what was read, the zone's last. Never PUT: that brings back what was deleted. Never
// renewed: a turn does not expire.
//
// However many wait for a turn, what one of them that comes free costs the API server is the same: they see on a watch
// that it is free, and each lets a random time pass, longer the more they are, and looks at the watch once more before
// it sends anything. Of one or two nodes that are out of service without a turn they see on a watch that they are
// back; what else no Lease tells they look for now and then, the more rarely the more they are.
//
// Whose a slot is decides its holder alone, so that a turn that was taken is found again when the labels of the Node or
// the options have changed since. One that was taken in another namespace does not count as held; release() gives it
// back there (see remember()). Errors: those of k8s::Client; Errc::invalid when the Node is not to be found where it
// belongs (see groups_of).
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "agent/node/own_pool.hpp"
#include "agent/ports/slots.hpp"
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
  // From the number of nodes of a group, pool or zone, to the number that may be out.
  std::function<std::size_t(std::size_t nodes)> limit = [](std::size_t) { return std::size_t{1}; };
};

class LeaseSlots final : public Slots {
 public:
  // Borrows client, rng and the node's identity.
  LeaseSlots(k8s::Client& client, Rng& rng, const OwnNode& node, LeaseSlotsOptions options);

  std::string name() const override { return "lease"; }
  void remember(const std::string& slot) override;
  Task<Turn> take(TimePoint deadline) override;
  Task<Turn> confirm(TimePoint deadline) override;
  Task<> release(TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;

 private:
  // All slots in the namespace, most recent, also those of unlisted_.
  Task<std::vector<k8s::Lease>> list(TimePoint deadline);
  // The groups of the own node with what counts against their limits, in the order in which slots are taken.
  Task<std::vector<GroupView>> look(TimePoint deadline);
  // Nothing: all are there. Otherwise why one is not; those before it are.
  Task<std::optional<std::string>> post(std::vector<k8s::Lease> slots, TimePoint deadline);
  // Why a slot cannot be taken although no list shows it: somebody was faster, or it bears no label by which it would
  // be listed, and counts from now on.
  Task<std::string> look_at_taken(std::string name, TimePoint deadline);
  // Gives back what is ours and of no group of the node, as its labels or our options say now.
  Task<> give_back_strays(const std::vector<GroupView>& views, TimePoint deadline);
  Task<> give_back(k8s::Lease lease, TimePoint deadline);
  // All that is ours, until no list shows it any more.
  using Lister = Task<std::vector<k8s::Lease>> (LeaseSlots::*)(TimePoint);
  Task<> give_all_back(Lister list, TimePoint deadline);
  Task<std::vector<k8s::Lease>> list_left_behind(TimePoint deadline);
  // A time between that and twice that, or later if many wait.
  TimePoint next_look(Duration at_least);
  // The answer of take() when it comes to nothing; remembers what stands in the way.
  Turn refuse(std::vector<GroupView> views, std::string why);
  // Whether nothing of that stands in the way any more, as far as Leases tell; `back`: nodes that are in service again.
  bool has_room(const std::vector<k8s::Lease>& slots, const std::set<std::string>& back) const;
  struct FollowedNode {
    OutNode seen;  // at the last look
    std::unique_ptr<k8s::Reflector<k8s::Node>> view;
  };
  FollowedNode follow(OutNode node, Notifier& moved);
  // As the watch shows it; nothing: it is in service, gone, or of another pool.
  std::optional<OutNode> now_out(const FollowedNode& node) const;
  boost::asio::awaitable<void> until_own_changes(const k8s::Reflector<k8s::Lease>& view, Notifier& moved);
  boost::asio::awaitable<void> until_room(const k8s::Reflector<k8s::Lease>& view,
                                          const std::vector<FollowedNode>& nodes, Notifier& moved);

  k8s::Client& client_;
  Clock& clock_;
  Rng& rng_;
  const OwnNode& node_;
  LeaseSlotsOptions options_;
  // A turn that was taken in another namespace, before ours was changed.
  struct LeftBehind {
    std::string ns, name;
  };
  std::optional<LeftBehind> left_behind_;
  OwnPool pool_;  // of the last look; no name: not known yet
  // Leases with the name of a slot, made by hand or robbed of their label, which neither list nor watch shows. They are
  // taken all the same: there is no second Lease of that name.
  std::vector<k8s::Lease> unlisted_;
  std::int64_t waiting_ = 0;                     // nodes in line at the last look
  std::map<std::string, std::string> own_seen_;  // Leases of our own: resourceVersion by UID
  // What stood in the way when no turn was to be had; empty when nothing did, or nobody asked.
  std::vector<GroupView> refused_;
  TimePoint look_at_{};  // when to ask again although no Lease made room
  Backoff in_vain_{BackoffOptions{std::chrono::milliseconds(500), 2.0, std::chrono::seconds(30)}};
  TimePoint vain_until_{};  // not before that, whatever the watch shows
};

}  // namespace haulout::agent
