// Reads the nodes and pods of a cluster page by page, and keeps of each only the fields that decide where pods fit.
// Boost.JSON parses the pages, because the pods of a cluster are by far the longest text that the fit check reads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/client.hpp"
#include "placement/objects.hpp"

namespace haulout::placement {

struct ClusterView {
  std::vector<Object> nodes;
  std::vector<Object> pods;  // without those that have finished
};

// Reads all nodes and pods. An expired continue token restarts a list. Fails with Errc::decode if a response is not
// such a list, and with any error of a list request. Cancellable. Borrows `client`.
Task<ClusterView> read_cluster(k8s::Client& client, std::uint32_t page_size, TimePoint deadline);

// Add the objects of a page to `into`, and return the token of the next page. Fail with Errc::decode if the text is not
// a list of this kind, and with Errc::protocol if it has too many values (k8s/codec_json.hpp). Pure.
Result<std::string> read_nodes(std::string_view page, std::vector<Object>& into);
Result<std::string> read_pods(std::string_view page, std::vector<Object>& into);

}  // namespace haulout::placement
