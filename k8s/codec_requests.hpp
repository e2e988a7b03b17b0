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

}  // namespace haulout::k8s
