// Applies a PATCH to a document. Pure.
#pragma once

#include <string>

#include "sim/objects.hpp"

namespace haulout::sim {

// RFC 7386.
void merge_patch(Json& target, const Json& patch);
// Like a merge patch, but merges lists of conditions (by type), taints (by key and effect) and ownerReferences (by
// uid). {"$patch": "delete"} removes an entry from them.
void strategic_merge_patch(Json& target, const Json& patch);

// Records `manager` in metadata.managedFields as the one that set spec.unschedulable of a Node. If the field is not
// true, only removes the old record.
void book_unschedulable(Json& node, const std::string& manager, WallTime now);

}  // namespace haulout::sim
