// Strict decoding as the API server does it: unknown and duplicate fields of the bodies that are sent to it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/objects.hpp"

namespace haulout::sim {

// Nothing when it is no JSON. duplicates: `duplicate field "a.b"`, one per duplicate.
std::optional<Json> parse_json(std::string_view text, std::vector<std::string>* duplicates);

// `unknown field "a.b"` for each field that the kind does not have.
std::vector<std::string> unknown_eviction_fields(const Json& body);
std::vector<std::string> unknown_delete_options_fields(const Json& body);
// For Node, Lease, Event and ConfigMap, also of a patch; nothing is unknown of other kinds.
std::vector<std::string> unknown_fields(const ResourceInfo& info, const Json& body);

}  // namespace haulout::sim
