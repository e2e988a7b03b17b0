// What a PATCH does to a document. Pure.
#pragma once

#include <string>

#include "sim/objects.hpp"

namespace haulout::sim {

// RFC 7386.
void merge_patch(Json& target, const Json& patch);
// Like a merge patch, but lists of conditions (by type) and taints (by key and effect) are merged, and
// {"$patch": "delete"} removes from them.
void strategic_merge_patch(Json& target, const Json& patch);

// Books who set spec.unschedulable of a Node into metadata.managedFields; nobody when the field is not set.
void book_unschedulable(Json& node, const std::string& manager, WallTime now);

}  // namespace haulout::sim
