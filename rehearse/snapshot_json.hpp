// The objects that a rehearsal needs, read from a running cluster.
#pragma once

#include <string>
#include <vector>

#include "k8s/client.hpp"
#include "rehearse/snapshot.hpp"

namespace haulout::rehearse {

struct SnapshotRead {
  Snapshot snapshot;
  std::vector<std::string> left_out{};  // kinds that the caller may not list, with the server's words
};

// Every list is most recent and paged. Nodes and Pods must be readable: their errors are those of the lists. Of other
// kinds a refusal is noted. Cancellable.
Task<SnapshotRead> read_snapshot(k8s::Client& client, TimePoint deadline);

}  // namespace haulout::rehearse
