// Who may hold a turn: decisions over the Leases of a pool. Pure.
//
// A slot is a Lease haulout-<pool>-<n>, n below the limit; its name makes it unique, its holder is "<node>/<Node UID>",
// and it is owned by that Node, so that the garbage collector voids it with its Node and nothing else does.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/objects.hpp"

namespace haulout::agent {

inline constexpr std::string_view pool_label = "haulout.dev/pool";

// Whose turn it would be. Filled before the first use.
struct OwnNode {
  std::string name;
  std::string uid;
  std::string holder() const { return name + "/" + uid; }
};

std::string slot_name(std::string_view pool, std::size_t index);
// Nothing: no slot of this pool (pool "a" has no part in "haulout-a-b-0").
std::optional<std::size_t> slot_index(std::string_view pool, std::string_view lease_name);

// The Lease by which a node takes a slot.
k8s::Lease slot_lease(std::string_view ns, std::string_view pool, std::size_t index, const OwnNode& node, WallTime now);
// It is this node's, and of this very Node object.
bool held_by(const k8s::Lease& lease, const OwnNode& node);

struct PoolView {
  std::vector<k8s::Lease> slots;  // of the pool; others in the namespace are ignored
  std::size_t limit = 1;
  // Nodes that are out of service without a slot: not Ready, or cordoned by somebody else.
  std::vector<std::string> out{};
};

struct SlotChoice {
  std::optional<std::size_t> take{};  // the index to try for
  std::string why{};                  // when none: who stands in the way, for people
};
// For a node that holds none. That it is itself out of service stands not in its way.
SlotChoice choose_slot(std::string_view pool, const PoolView& view, const OwnNode& node);
// For a node that has just taken one: nothing, or why it must be given back.
std::optional<std::string> must_give_back(std::string_view pool, const PoolView& view, const OwnNode& node);

}  // namespace haulout::agent
