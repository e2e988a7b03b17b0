// Reads the objects that a rehearsal needs from the API server of a running cluster.
#pragma once

#include <string>
#include <vector>

#include "k8s/client.hpp"
#include "rehearse/snapshot.hpp"

namespace haulout::rehearse {

struct SnapshotRead {
  Snapshot snapshot;
  // Kinds that are missing in the snapshot because the caller may not list them, each with the server's message
  std::vector<std::string> left_out{};
};

// Lists the objects in pages, with the most recent state of each list. If the caller may not list a kind other than
// nodes and pods, notes that in `left_out`. Fails with any other error of a list. Cancellable.
Task<SnapshotRead> read_snapshot(k8s::Client& client, TimePoint deadline);

}  // namespace haulout::rehearse
