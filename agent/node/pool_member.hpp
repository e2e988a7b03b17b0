// Which nodes belong to a pool that is known by its name and not by a label selector. Pure.
//
// The pool of a node is in the record of its agent. Without that, it is in the label haulout.dev/pool, which a person
// may set on a node without an agent. Without both, it is the pool of the slot that the node holds. So the removal of a
// label does not move a node to another pool.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/node/own_pool.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {

inline constexpr std::string_view default_pool = "default";
// The pool of nodes with the label below, unless the user names another one. Its limit is one node.
inline constexpr std::string_view control_plane_pool = "control-plane";
inline constexpr std::string_view control_plane_label = "node-role.kubernetes.io/control-plane";

// Returns true if this is the pool of control-plane nodes, chosen by their role and not by the user.
bool is_control_plane(const OwnPool& pool);
// Returns the pool of a node for which the configuration names none.
std::string pool_of_role(const std::map<std::string, std::string>& node_labels);

// Returns the pool in the record of the node's agent, otherwise the pool in the label, otherwise nothing.
std::optional<std::string> told_pool(const k8s::Node& node);

enum class Membership {
  member,
  // The pool of the node is not known: it has no agent yet, or never will. The node may belong to this pool. So it
  // counts against the limit while it is unavailable, but not as one of the nodes of which a percentage is taken.
  unknown,
  stranger,
};
// `turns`: the Leases (slots) of all pools.
Membership membership_of(const k8s::Node& node, const OwnPool& pool, const std::vector<k8s::Lease>& turns = {});

}  // namespace haulout::agent
