// Who may hold a turn: decisions over the Leases of a pool, and of a zone of it. Pure.
//
// A slot is a Lease haulout-<pool>-<n>, n below the limit; its name makes it unique, its holder is "<node>/<Node UID>",
// and it is owned by that Node, so that the garbage collector voids it with its Node and nothing else does. Where zones
// are limited, too, a node needs a second one, haulout-<pool>.<zone>-<n>.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/node/node_labels.hpp"
#include "agent/node/own_node.hpp"
#include "k8s/objects.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

inline constexpr std::string_view zone_label = "haulout.dev/zone";

// Nodes that share a limit: a pool, or the part of it in one zone.
struct SlotGroup {
  std::string pool;
  std::string zone{};  // empty: all of the pool

  // "blue", "blue.eu-west-1a": between "haulout-" and the index in the name of a Lease, which is a DNS subdomain. What
  // does not fit there is written in hexadecimal; two groups never have the same name.
  std::string name() const;
  // For people: "pool blue", "pool blue in zone eu-west-1a".
  std::string words() const;
  bool operator==(const SlotGroup&) const = default;
};

// Where the groups of a node come from.
struct SlotGrouping {
  std::string pool{};        // empty: that of the node's role
  std::string pool_label{};  // when set: the pool is the value of this label of the Node
  std::string zone_label{};  // when set: each value of this label is limited, too
};
// The groups whose slots the node needs, in the order in which they are taken: the zone, then the pool. Errc::invalid
// when the Node lacks a label, or the name of a Lease would be too long; the message names the way out.
Result<std::vector<SlotGroup>> groups_of(const SlotGrouping& grouping, const std::string& node,
                                         const std::map<std::string, std::string>& node_labels);

std::string slot_name(const SlotGroup& group, std::size_t index);
// Nothing: no slot of this group (pool "a" has no part in "haulout-a-b-0", nor in "haulout-a.zone-0").
std::optional<std::size_t> slot_index(const SlotGroup& group, std::string_view lease_name);
// The slot of a zone, of whichever pool.
bool is_zone_slot(std::string_view lease_name);

// The Lease by which a node takes a slot.
k8s::Lease slot_lease(std::string_view ns, const SlotGroup& group, std::size_t index, const OwnNode& node,
                      WallTime now);
// By its labels it is no slot of any pool; whether by its name, slot_index() says.
bool is_unlisted(const k8s::Lease& lease);
// Who holds it, for people.
std::string words_of(const k8s::Lease& lease);
// It is this node's, and of this very Node object.
bool held_by(const k8s::Lease& lease, const OwnNode& node);

// A node that is out of service: not Ready, or cordoned.
struct OutNode {
  std::string name;
  std::string why{};  // for people: "NotReady", "cordoned by jane"
  bool operator==(const OutNode&) const = default;
};

struct GroupView {
  SlotGroup group;
  std::vector<k8s::Lease> slots;  // those of other groups are ignored
  std::size_t limit = 1;
  std::size_t members = 0;                        // nodes of which the limit may be a share
  std::vector<OutNode> out{};                     // whether with a slot, the slots tell
  std::map<std::string, std::string> degraded{};  // nodes that say so: their reason
  std::string as_of{};  // the time of the view, for people, where nothing tells when it is no longer true
};

// Those of them that hold no slot of the group now; a holder is counted by its slot. `but` is left out.
std::vector<OutNode> out_without_slot(const GroupView& view, std::string_view but);

struct SlotChoice {
  std::optional<std::size_t> take{};  // the index to try for
  std::string why{};                  // when none: who stands in the way, for people
};
// For a node that holds none. That it is itself out of service does not stand in its way. A node that holds several
// slots counts once, and leaves as many names above the limit to the others.
SlotChoice choose_slot(const GroupView& view, const OwnNode& node);
// For a node that has just taken one: nothing, or why it must be given back.
std::optional<std::string> must_give_back(const GroupView& view, const OwnNode& node);

}  // namespace haulout::agent
