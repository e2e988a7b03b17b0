// How much of each resource: what pods request, and what nodes have. Sums end at a bound instead of overflowing. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "placement/objects.hpp"

namespace haulout::placement {

using Amounts = std::map<std::string, std::int64_t>;  // by resource, in thousandths

void add(Amounts& to, const Amounts& more);
void subtract(Amounts& from, const Amounts& less);
// 0 of what it does not name.
std::int64_t amount(const Amounts& of, const std::string& resource);

// What is allocatable, or else the capacity. What cannot be read is none.
Amounts limits_of(const Json& node);

// The sum of what runs at the same time, and never less than what an init container needs alone; what the pod as a
// whole requests is that. "pods" is 1000. Without what a ResourceClaim serves (claimed_resources()). What cannot be
// read, or is too much to be told, is more than any node has.
Amounts requests_of(const Json& pod);

}  // namespace haulout::placement
