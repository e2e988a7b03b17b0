// Strict decoding as in the API server: finds unknown and duplicate fields of request bodies. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/objects.hpp"

namespace haulout::sim {

// Returns nullopt if the text is not JSON. Appends to `duplicates` a `duplicate field "a.b"` for each duplicate.
std::optional<Json> parse_json(std::string_view text, std::vector<std::string>* duplicates);

// Return `unknown field "a.b"` for each field that the kind does not have.
std::vector<std::string> unknown_eviction_fields(const Json& body);
std::vector<std::string> unknown_delete_options_fields(const Json& body);
// For Node, Lease, Event and ConfigMap, and patches of them; empty for other kinds.
std::vector<std::string> unknown_fields(const ResourceInfo& info, const Json& body);

}  // namespace haulout::sim
