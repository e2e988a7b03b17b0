// Amounts of resources: what pods request, and what nodes have. Sums are clamped instead of overflowing. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "placement/objects.hpp"

namespace haulout::placement {

using Amounts = std::map<std::string, std::int64_t>;  // in thousandths, by the name of the resource

void add(Amounts& to, const Amounts& more);
void subtract(Amounts& from, const Amounts& less);
// Returns 0 for a resource that is not in `of`.
std::int64_t amount(const Amounts& of, const std::string& resource);

// Returns what is allocatable on the node, or its capacity if that is missing. Leaves out amounts that cannot be
// parsed.
Amounts limits_of(const Json& node);

// Returns the sum of what runs at the same time, or what an init container needs if that is more. Requests of the pod
// as a whole replace it. Overhead is added. "pods" is 1000. Resources that a ResourceClaim serves are left out
// (claimed_resources()). An amount that cannot be parsed or is too large counts as more than any node has.
Amounts requests_of(const Json& pod);

}  // namespace haulout::placement
