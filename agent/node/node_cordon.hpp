// Finds out who cordoned a node, because the agent treats the cordon of a person differently from its own. Pure.
#pragma once

#include <optional>
#include <string>

#include "k8s/objects.hpp"

namespace haulout::agent {

// A cordon that no agent has set, but kubectl, another tool, `haulout cordon` or `haulout drain`.
struct PersonsCordon {
  std::string by{};  // the person, from the mark: "jane@laptop"
  // If there is no mark: the field manager that set spec.unschedulable, from managedFields ("kubectl-cordon"); empty if
  // not known.
  std::string tool{};
  std::optional<WallTime> since{};  // from the mark, otherwise from the taint that follows spec.unschedulable
  bool operator==(const PersonsCordon&) const = default;
};
// What an agent does with a node that a person has cordoned: wait, or update it nevertheless.
enum class CordonedNodes { wait, update };

// Returns nothing if the node is schedulable, or if an agent has cordoned it.
std::optional<PersonsCordon> persons_cordon(const k8s::Node& node);
// Returns a clause like "cordoned by jane@laptop" or "cordoned with kubectl-cordon".
std::string words_of(const PersonsCordon& cordon);

// Returns why a node is unavailable, like "NotReady", "cordoned by jane@laptop" or "cordoned by its agent". Empty if it
// is Ready and schedulable.
std::string out_of_service(const k8s::Node& node);

}  // namespace haulout::agent
