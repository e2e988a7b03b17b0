// Who cordoned a node, for what depends on whether that was a person. Pure.
#pragma once

#include <optional>
#include <string>

#include "k8s/objects.hpp"

namespace haulout::agent {

// A cordon that no agent set: by kubectl, by another tool, or by `haulout cordon` and `haulout drain`.
struct PersonsCordon {
  std::string by{};                 // who, by the mark: "jane@laptop"
  std::string tool{};               // else with what, as the server has booked it: "kubectl-cordon"; empty: not known
  std::optional<WallTime> since{};  // by the mark, else by the taint that follows the field
  bool operator==(const PersonsCordon&) const = default;
};
// What an agent does with a node that a person has cordoned: it waits, or updates it all the same.
enum class CordonedNodes { wait, update };

// Nothing when the node takes pods, or an agent has cordoned it.
std::optional<PersonsCordon> persons_cordon(const k8s::Node& node);
// "cordoned by jane@laptop", "cordoned with kubectl-cordon".
std::string words_of(const PersonsCordon& cordon);

// Why a node is out of service: "NotReady", "cordoned by jane@laptop", "cordoned by its agent"; empty: it is in
// service.
std::string out_of_service(const k8s::Node& node);

}  // namespace haulout::agent
