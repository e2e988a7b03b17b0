// The Node that an agent serves, the pool of that Node, which other nodes belong to the pool, and how many of them may
// be unavailable. Pure.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/node/state.hpp"
#include "k8s/objects.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// The Node that an agent serves. The UID distinguishes it from a later Node of the same name.
struct OwnNode {
  std::string name;
  std::string uid;
  // Returns the value that this node writes into the holder field of the Lease of its slot.
  std::string holder() const { return name + "/" + uid; }
  bool operator==(const OwnNode&) const = default;
};

// A pool, and how to find out which nodes belong to it.
struct OwnPool {
  std::string name;
  std::string node_selector{};  // label selector of the pool's nodes; empty: see membership_of()
  bool by_role = false;         // no pool is configured, so each node belongs to the pool of its role
  bool operator==(const OwnPool&) const = default;
};

// Membership of nodes in a pool that is known by its name and not by a label selector.
//
// The pool of a node is the one in the record of its agent. Without a record, it is the one in the label
// haulout.dev/pool, which a person may set on a node without an agent. Without both, it is the pool of the slot that
// the node holds. Therefore the removal of a label does not move a node to another pool. Without all three, the pool is
// unknown; but if the pool is chosen by role (OwnPool::by_role), a node of another role does not belong to it.

// Label of a Node, and of the Leases that are slots.
inline constexpr std::string_view pool_label = "haulout.dev/pool";
inline constexpr std::string_view default_pool = "default";
// The pool of nodes with the label `control_plane_label`, unless the user names another pool. Its limit is one node.
inline constexpr std::string_view control_plane_pool = "control-plane";
inline constexpr std::string_view control_plane_label = "node-role.kubernetes.io/control-plane";

// Returns true if this is the pool of control-plane nodes, chosen by their role and not by the user.
bool is_control_plane(const OwnPool& pool);
// Returns the pool of a node for which the configuration names no pool.
std::string pool_of_role(const std::map<std::string, std::string>& node_labels);

// Returns the pool in the record of the node's agent; otherwise the pool in the label; otherwise nothing.
std::optional<std::string> told_pool(const k8s::Node& node);

// A Node of a list, with what is read of it again and again while it does not change: its told_pool(), which costs as
// much as decoding the whole Node, and the state in its label.
struct ListedNode {
  std::shared_ptr<const k8s::Node> node;
  std::optional<std::string> told;
  std::optional<State> state;
};
ListedNode listed(k8s::Node node);

// Whether a node belongs to a pool.
enum class Membership {
  member,
  // The pool of the node is unknown: it has no agent yet, or never will. It may belong to this pool, so it counts
  // against the limit while it is unavailable, but not as one of the nodes to which a percentage refers.
  unknown,
  stranger,  // it belongs to another pool
};
// Returns whether the node belongs to the pool. `turns` holds the Leases (slots) of all pools.
Membership membership_of(const k8s::Node& node, const OwnPool& pool, const std::vector<k8s::Lease>& turns = {});
Membership membership_of(const ListedNode& listed, const OwnPool& pool, const std::vector<k8s::Lease>& turns);

// --max-unavailable: the number or percentage of nodes of a pool that may be unavailable at the same time.
struct MaxUnavailable {
  enum class Unit { nodes, percent };
  std::size_t value = 1;
  Unit unit = Unit::nodes;

  // Returns the limit of a pool with this many nodes. A percentage is rounded down, but one above 0 % is at least one
  // node. A percentage of no nodes is 0: the asking node itself belongs to the pool, so an empty list of nodes is
  // wrong.
  std::size_t of(std::size_t nodes) const;
  bool operator==(const MaxUnavailable&) const = default;
};

// Parses "1", "25%", or "0" for no node at all. Otherwise fails with Errc::invalid; the message has cause and remedy,
// and the caller adds the text.
Result<MaxUnavailable> parse_max_unavailable(std::string_view text);
// Parses "1,2,5%,25%": the sizes of the waves of a roll-out, none of them 0. Otherwise fails with Errc::invalid; the
// message has cause and remedy, and the caller adds the text. An empty text has no waves.
Result<std::vector<MaxUnavailable>> parse_ramp(std::string_view text);
// The limit as a value for the command line.
std::string to_string(const MaxUnavailable& limit);

}  // namespace haulout::agent
