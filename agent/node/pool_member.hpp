// Which nodes belong to a pool that has a name, not a label. Pure.
//
// A node tells its pool by the record of its agent, else by the label haulout.dev/pool, which a person may set where no
// agent runs, else by the turn that it holds. So a label that somebody removes moves no node to another pool.
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

// The pool of control-plane nodes, and so because nobody named another one.
bool is_control_plane(const OwnPool& pool);
// The pool of a node for which the configuration names none.
std::string pool_of_role(const std::map<std::string, std::string>& node_labels);

// The pool that the record of the node's agent names, else that of the label.
std::optional<std::string> told_pool(const k8s::Node& node);

enum class Membership {
  member,
  // Nothing tells its pool: it has no agent yet, or none at all. It may belong to this one, so it counts as out when it
  // is out, and never as a node of which a percentage is taken.
  unknown,
  stranger,
};
// `turns`: the Leases of all pools.
Membership membership_of(const k8s::Node& node, const OwnPool& pool, const std::vector<k8s::Lease>& turns = {});

}  // namespace haulout::agent
