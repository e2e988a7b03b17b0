// Reads the objects that a rehearsal needs from a running cluster.
#pragma once

#include <string>
#include <vector>

#include "k8s/client.hpp"
#include "rehearse/snapshot.hpp"

namespace haulout::rehearse {

struct SnapshotRead {
  Snapshot snapshot;
  std::vector<std::string> left_out{};  // kinds that the caller may not list, each with the server's message
};

// Every list is most recent and paged. If the caller may not list a kind other than nodes and pods, notes that in
// `left_out`. Fails with any other error of a list. Cancellable.
Task<SnapshotRead> read_snapshot(k8s::Client& client, TimePoint deadline);

}  // namespace haulout::rehearse
