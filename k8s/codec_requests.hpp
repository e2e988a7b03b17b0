// Encodes the JSON bodies of requests. Pure.
#pragma once

#include <string>
#include <string_view>

#include "k8s/requests.hpp"

namespace haulout::k8s {

// The API server takes the dry run of an eviction from the query. It reads the query of a DELETE only if the request
// has no body, so the body of a DELETE must contain `dryRun`.
std::string encode_eviction(std::string_view ns, std::string_view pod, const DeleteOptions& options);
std::string encode_delete_options(const DeleteOptions& options, DryRun dry_run);
std::string encode_access_review(const ResourceAttributes& attributes);
std::string encode_self_review();
// Writes times with exactly six decimals, as the API requires.
std::string encode_lease(const Lease& lease);
std::string encode_config_map(const ConfigMap& config_map);
std::string encode_event(const NodeEvent& event);
std::string encode_event_series(std::int32_t count, WallTime last_observed);

}  // namespace haulout::k8s
