// The order of a roll-out (--roll-out-order): which of the nodes that wait for a slot goes first. Pure.
//
// Like the waves, the order is computed from what stands on the Nodes. Only a node that could take a slot goes before
// another one: it is in the state `waiting`, so all its gates are open, and it is Ready. So a node that cannot go holds
// nobody up. That an agent has died is not visible on its Node in this state; LeaseSlots passes over a node that does
// not take the slot that is free for it.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/objects.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

struct RollOutOrder {
  enum class By {
    any,    // no order: whoever takes a free slot first has it
    label,  // by the value of a label of the Node: numbers by size, then texts, then nodes without the label
    asked,  // who has needed its update for longer goes first
  };
  By by = By::any;
  std::string label{};  // its key, with By::label
  bool operator==(const RollOutOrder&) const = default;
};

inline constexpr std::string_view standard_zone_label = "topology.kubernetes.io/zone";

// Parses "any", "zone" (the label of the zone), "label:KEY" and "asked". Otherwise fails with Errc::invalid; the
// message has cause and remedy, and the caller adds the text. Does not check whether KEY is the key of a label.
Result<RollOutOrder> parse_roll_out_order(std::string_view text);

// A node that goes before another one.
struct EarlierNode {
  std::string name;
  std::string words;  // for messages: "n1 (zone a)"
  // No node goes before it. Or neither this node nor those before it show that they have seen a free slot: the agents
  // of all of them may have died.
  bool first = false;
  std::size_t place = 0;  // nodes of the same place are equal in the order
  bool operator==(const EarlierNode&) const = default;
};

// The nodes that wait for a slot, as one of them sees them.
struct OrderedLine {
  std::vector<EarlierNode> before;  // those that go before it, the first one first
  std::size_t beside = 0;           // number of those that are equal to it: whoever takes a free slot first has it
};

// Returns the line of `own`, which waits to be updated to `version` (empty if it has none). Nodes in `passed_over` do
// not count. Neither does a node that waits for the waves of another version. Without an order the line is empty.
OrderedLine line_of(const RollOutOrder& order, const k8s::Node& own, const std::string& version,
                    const std::vector<const k8s::Node*>& members, const std::set<std::string>& passed_over);

// "2 nodes go before this one in the roll-out, by the label topology.kubernetes.io/zone: n1 (a), n2 (a)".
std::string words_of(const RollOutOrder& order, const std::vector<EarlierNode>& before);

}  // namespace haulout::agent
