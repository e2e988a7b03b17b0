// Applies the body of a PATCH request to an object, as the API server does. Pure.
#pragma once

#include <string>

#include "sim/objects.hpp"

namespace haulout::sim {

// Applies a JSON merge patch (RFC 7386) to `target`.
void merge_patch(Json& target, const Json& patch);
// Applies a strategic merge patch to `target`: like merge_patch(), but merges lists of conditions (by type), taints (by
// key and effect) and ownerReferences (by uid). {"$patch": "delete"} removes an entry from them.
void strategic_merge_patch(Json& target, const Json& patch);

// Records `manager` in metadata.managedFields as the one that set spec.unschedulable of a Node. If spec.unschedulable
// is not true, only removes the old record.
void book_unschedulable(Json& node, const std::string& manager, WallTime now);

}  // namespace haulout::sim
