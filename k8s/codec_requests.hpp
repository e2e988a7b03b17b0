// JSON bodies of the requests that have one. Pure.
#pragma once

#include <string>
#include <string_view>

#include "k8s/requests.hpp"

namespace haulout::k8s {

// Neither says anything of dry runs: those are asked for in the query, and the API wants it there or in both.
std::string encode_eviction(std::string_view ns, std::string_view pod, const DeleteOptions& options);
std::string encode_delete_options(const DeleteOptions& options);
std::string encode_access_review(const ResourceAttributes& attributes);
std::string encode_self_review();
// With times as the API wants them: exactly six decimals.
std::string encode_lease(const Lease& lease);
std::string encode_config_map(const ConfigMap& config_map);
std::string encode_event(const NodeEvent& event);
std::string encode_event_series(std::int32_t count, WallTime last_observed);

}  // namespace haulout::k8s
