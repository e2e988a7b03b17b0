// What a Node must show before it counts as well after a boot or an installation, in addition to the kubelet's Ready:
// conditions that the user names, and the end of the taints of node-readiness-controller. Pure.
#pragma once

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
// with a message that says how to write it.
Result<WantedCondition> parse_condition(std::string_view text);

// Returns what the Node does not show yet, as a text for people: a taint with readiness_taint_prefix, or a condition
// that has another status or is missing. Returns an empty text if the Node shows everything.
std::string not_shown_yet(const k8s::Node& node, const std::vector<WantedCondition>& wanted);

}  // namespace haulout::agent
