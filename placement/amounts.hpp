// Computes amounts of resources: the requests of pods and the limits of nodes. Parses the quantities of the API. Sums
// are clamped instead of overflowing. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "placement/objects.hpp"

namespace haulout::placement {

// Parses a quantity: "500m", "2", "1.5", "128Mi", "1e3".
// Returns the quantity in thousandths of its unit, rounded up as the API does. Returns nullopt if it is not a quantity
// or if the result exceeds ±9.2e18.
std::optional<std::int64_t> thousandths(std::string_view quantity);

using Amounts = std::map<std::string, std::int64_t>;  // in thousandths, by the name of the resource

void add(Amounts& to, const Amounts& more);
void subtract(Amounts& from, const Amounts& less);
// Returns 0 for a resource that is not in `of`.
std::int64_t amount(const Amounts& of, const std::string& resource);

// Returns the node's status.allocatable, or its status.capacity if that is missing. Leaves out amounts that cannot be
// parsed.
Amounts limits_of(const Json& node);

// Returns the requests of the pod: for each resource the sum over the containers that run at the same time, or the
// request of an init container if that is more. Requests of the pod as a whole (spec.resources) replace that sum.
// Overhead is added. The amount of "pods" is one pod, which is 1000. Resources that a ResourceClaim serves are left out
// (claimed_resources()). An amount that cannot be parsed or is too large counts as more than any node has.
Amounts requests_of(const Json& pod);

}  // namespace haulout::placement
