// Finds out who cordoned a node. The agent treats the cordon of a person differently from its own. Pure.
#pragma once

#include <optional>
#include <string>

#include "k8s/objects.hpp"

namespace haulout::agent {

// A cordon that no agent set, but kubectl, another tool, or `haulout cordon` and `haulout drain`.
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
// Returns, for example, "cordoned by jane@laptop" or "cordoned with kubectl-cordon".
std::string words_of(const PersonsCordon& cordon);

// Why a node is unavailable: "NotReady", "cordoned by jane@laptop" or "cordoned by its agent", for example. Empty if it
// is Ready and schedulable.
std::string out_of_service(const k8s::Node& node);

}  // namespace haulout::agent
