// What a Node must show before it counts as well after a boot or an installation, in addition to the kubelet's Ready:
// conditions that the user names, and the end of the taints of node-readiness-controller. Pure.
//
// The status of a condition may be from before the boot: some programs write a condition only when it changes, so its
// times do not show whether they have looked since. Therefore the times do not count. docs/tasks.md says which
// conditions suit.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {

// A condition of a Node and the status that it must have.
struct WantedCondition {
  std::string type;
  std::string status = "True";
  bool operator==(const WantedCondition&) const = default;
};

// The prefix of the taints that node-readiness-controller sets on a node until its requirements are met
// (kubernetes-sigs/node-readiness-controller, NodeReadinessRule).
inline constexpr std::string_view readiness_taint_prefix = "readiness.k8s.io/";

// Parses "TYPE" or "TYPE=STATUS". The status is True, False or Unknown; without one it is True. Errors: Errc::invalid,
// with a message that says what is wrong and what to do. Refuses Ready, which the agent checks itself for the current
// boot, and the conditions that agents set.
Result<WantedCondition> parse_condition(std::string_view text);

// Returns the keys of the Node's readiness taints: the first ones in the order of their names, at most
// `most_old_taints`, because they are kept in the record.
inline constexpr std::size_t most_old_taints = 20;
std::set<std::string> readiness_taints(const k8s::Node& node);

// Returns what the Node does not show yet, as a text for people: readiness taints that are not in `old_taints`, and
// conditions that have another status or are missing. Names the first few. Returns an empty text if the Node shows
// everything.
std::string not_shown_yet(const k8s::Node& node, const std::set<std::string>& old_taints,
                          const std::vector<WantedCondition>& wanted);

}  // namespace haulout::agent
