// Strict decoding as in the API server: finds unknown and duplicate fields in request bodies. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/objects.hpp"

namespace haulout::sim {

// Parses the text. Returns nullopt if it is not JSON. Appends `duplicate field "a.b"` to `duplicates` for each
// duplicate field.
std::optional<Json> parse_json(std::string_view text, std::vector<std::string>* duplicates);

// The three functions below return `unknown field "a.b"` for each field of the body that its kind does not have.
std::vector<std::string> unknown_eviction_fields(const Json& body);
std::vector<std::string> unknown_delete_options_fields(const Json& body);
// Checks Nodes, Leases, Events and ConfigMaps, and patches of these. Returns an empty list for other kinds.
std::vector<std::string> unknown_fields(const ResourceInfo& info, const Json& body);

}  // namespace haulout::sim
