// The rules for slots, and the view of a pool on which they decide. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/node/pool.hpp"
#include "agent/node/roll_out_order.hpp"
#include "agent/slots/waves.hpp"
#include "drain/reasons.hpp"
#include "k8s/objects.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// Decides from the Leases of a pool, and of one of its zones, which node may hold a slot. Pure.
//
// A slot is stored as a Lease haulout-<pool>-<n>, with n below the limit. Its name makes it unique, and its holder is
// "<node>/<Node UID>". The Node owns the Lease, so that the garbage collector deletes it with its Node; nothing else
// makes it invalid. If zones are limited, too, a node needs a second Lease, haulout-<pool>.<zone>-<n>.

inline constexpr std::string_view zone_label = "haulout.dev/zone";

// Nodes that share a limit: a pool, or the part of it in one zone.
struct SlotGroup {
  std::string pool;
  std::string zone{};  // empty for the whole pool

  // Returns "blue" or "blue.eu-west-1a": the part between "haulout-" and the index in the name of a Lease, which is a
  // DNS subdomain. Characters that are not allowed there become hexadecimal. Two groups never have the same name.
  std::string name() const;
  // Returns the group for messages: "pool blue", "pool blue in zone eu-west-1a".
  std::string words() const;
  bool operator==(const SlotGroup&) const = default;
};

// The options that determine the groups of a node.
struct SlotGrouping {
  std::string pool{};        // empty for the pool of the node's role
  std::string pool_label{};  // if set, the pool is the value of this label of the Node
  std::string zone_label{};  // if set, each zone has a limit, too: the nodes with the same value of this label
};
// Returns the groups in which the node needs a slot, in the order in which the agent takes them: the zone, then the
// pool. Fails with Errc::invalid if the Node lacks a label, or if the name of a Lease would be too long. The message
// names the remedy.
Result<std::vector<SlotGroup>> groups_of(const SlotGrouping& grouping, const std::string& node,
                                         const std::map<std::string, std::string>& node_labels);

std::string slot_name(const SlotGroup& group, std::size_t index);
// Returns the index of a slot from the name of its Lease. Returns nothing if the Lease is not a slot of this group
// ("haulout-a-b-0" and "haulout-a.zone-0" are not slots of pool "a").
std::optional<std::size_t> slot_index(const SlotGroup& group, std::string_view lease_name);
// Returns true if the name is that of a slot of a zone, in any pool.
bool is_zone_slot(std::string_view lease_name);

// Returns a machine that is no Node of this cluster, and that gets its slots from fleetlock_service.hpp. Its name has
// spaces, which no Node's name has, so that it is never taken for a Node. Its Lease has no owner, so the garbage
// collector does not delete it.
OwnNode outside_machine(const std::string& id);
// Returns true for such a machine. `holder` is the holder of a Lease or its name.
bool is_outside(std::string_view holder);

// The names by which a FleetLock server knows a slot.
struct FleetLockNames {
  std::string group;  // empty: there is no such slot
  std::string id;     // of the machine; empty if an older agent took the slot, which did not store the id
};
// Return the name of such a slot (Turn::slot), "fleetlock/GROUP@ID", and the names in one. The names are empty if the
// slot was taken elsewhere.
std::string fleetlock_slot(const FleetLockNames& names);
FleetLockNames fleetlock_names(std::string_view slot);

// Builds the Lease that a node, or a machine outside of the cluster, creates to take a slot.
k8s::Lease slot_lease(std::string_view ns, const SlotGroup& group, std::size_t index, const OwnNode& node,
                      WallTime now);
// Returns true if the Lease lacks the pool label, so that no list of slots contains it. Does not check its name; see
// slot_index().
bool is_unlisted(const k8s::Lease& lease);
// Returns the name of the node that holds the Lease; empty if the holder is unknown.
std::string name_of_holder(const k8s::Lease& lease);
// Returns the holder's name for messages.
std::string words_of(const k8s::Lease& lease);
// Returns true if this Node object holds the Lease; an older Node of the same name does not count.
bool held_by(const k8s::Lease& lease, const OwnNode& node);

// A node that is unavailable: not Ready, or cordoned.
struct OutNode {
  std::string name;
  std::string why{};  // for messages: "NotReady", "cordoned by jane"
  bool operator==(const OutNode&) const = default;
};

// What counts against the limit of one group.
struct GroupView {
  SlotGroup group;
  std::vector<k8s::Lease> slots;  // Leases of other groups are ignored
  std::size_t limit = 1;
  std::size_t members = 0;                        // number of nodes from which a percentage limit is computed
  std::vector<OutNode> out{};                     // unavailable nodes, with and without a slot
  std::map<std::string, std::string> degraded{};  // reason of each degraded node, by its name
  std::string as_of{};  // time of the view, for messages; empty if watches keep the view current
  // With --ramp, for a pool: the roll-out of the version to which this node is to be updated.
  std::optional<RollOut> roll_out{};
  // With --roll-out-order, for a pool: the nodes that go before this one.
  RollOutOrder order{};
  std::vector<EarlierNode> before{};
};

// Returns the names of the nodes that hold a slot of the group, each once; an empty name for each unknown holder.
std::vector<std::string> holders_of(const GroupView& view);

// Returns the unavailable nodes that hold no slot of the group, without the node named `but`. A holder already counts
// by its slot.
std::vector<OutNode> out_without_slot(const GroupView& view, std::string_view but);

// Returns the nodes that go before this one, without those that have got a slot meanwhile.
std::vector<EarlierNode> earlier_without_slot(const GroupView& view);

struct SlotChoice {
  std::optional<std::size_t> take{};              // index of the slot to take
  std::string why{};                              // if there is no index: which nodes use up the limit, for messages
  std::string reason = reason::waiting_for_slot;  // if there is no index, for the label
};
// Chooses a slot for `node`, which holds none. Does not count `node` itself as unavailable. A node that holds several
// slots counts once; its additional slots do not reduce the number of slots for other nodes. With a roll-out, the
// present wave limits the number of slots, too. If a slot is free, but another node goes before this one, chooses none.
SlotChoice choose_slot(const GroupView& view, const OwnNode& node);
// Returns the present wave as `node` sees it. A machine outside of the cluster has no place in a wave. Requires that
// the view has a roll-out.
Wave present_wave(const GroupView& view, const std::string& node);
// Returns why the present wave of the roll-out does not permit `node` to have a slot; nothing if it does, or if the
// view has no roll-out. Does not depend on whether the node has a slot.
std::optional<std::string> refused_by_wave(const GroupView& view, const OwnNode& node);
// For a node that has just taken a slot. Returns why it must release the slot; nothing if it may keep it.
std::optional<std::string> must_give_back(const GroupView& view, const OwnNode& node);

// The functions below compute from Nodes and Leases what counts against the limits of one pool. Pure.

// Returns the pool of a node. `name` is the name of the pool in the result of groups_of().
OwnPool pool_named(const SlotGrouping& grouping, const std::string& name);

struct PoolNode {
  const k8s::Node* node;
  bool counts;                   // true if it certainly belongs to the pool, false if its pool is unknown
  std::optional<State> state{};  // as its label tells
};
// Returns the nodes that belong to the pool, and those whose pool is unknown. `turns` holds the Leases of all pools.
// Borrows `nodes`.
std::vector<PoolNode> nodes_of(const OwnPool& pool, const OwnNode& own, const std::vector<ListedNode>& nodes,
                               const std::vector<k8s::Lease>& turns);

// Notes in the view that the node is degraded, and why; nothing if its label has another state.
void note_if_degraded(GroupView& view, const k8s::Node& node, std::optional<State> state);

// Fills all fields of the view except `limit` and `as_of`.
GroupView view_of(SlotGroup group, const std::string& zone_label_key, const std::vector<PoolNode>& nodes,
                  const std::vector<k8s::Lease>& slots);

// Returns the node if it counts as unavailable. Returns nothing if it is available or belongs to another pool.
std::optional<OutNode> out_of(const k8s::Node& node, const OwnPool& pool);

// Returns the unavailable nodes that hold no slot, each once, without the node named `but`.
std::vector<OutNode> out_without_slot(const std::vector<GroupView>& views, std::string_view but);

}  // namespace haulout::agent
