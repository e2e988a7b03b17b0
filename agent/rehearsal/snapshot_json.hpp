// The objects that a rehearsal needs, read from a running cluster.
#pragma once

#include <string>
#include <vector>

#include "k8s/client.hpp"

namespace haulout::agent {

struct Snapshot {
  std::vector<std::string> documents;  // lists, as the server sends them
  std::vector<std::string> left_out;   // kinds that the caller may not list, with the server's words
};

// Every list is most recent and paged. Nodes and Pods must be readable: their errors are those of the lists. Of other
// kinds a refusal is noted. Cancellable.
Task<Snapshot> read_snapshot(k8s::Client& client, TimePoint deadline);

}  // namespace haulout::agent
