// A snapshot: the objects of a cluster as they were at one moment, from which a rehearsal starts. It comes from files
// or from the API server of a running cluster.
#pragma once

#include <string>
#include <vector>

#include "k8s/client.hpp"
#include "retry/clock.hpp"

namespace haulout::rehearse {

struct Document {
  std::string text;    // objects as kubectl prints them: a List or single objects, JSON or YAML
  std::string file{};  // path of the file that holds the text; empty if it is not from a file
};

struct Snapshot {
  std::vector<Document> documents{};
  WallTime read_at{};
  // True if the documents come from files. Then the moment of the snapshot is the newest time in them, and not
  // `read_at`, which may be days later.
  bool stored = false;
};

struct SnapshotRead {
  Snapshot snapshot;
  // Kinds that are missing in the snapshot because the caller may not list them, each with the server's message
  std::vector<std::string> left_out{};
};

// Lists the objects in pages, with the most recent state of each list. If the caller may not list a kind other than
// nodes and pods, notes that in `left_out`. Fails with any other error of a list. Cancellable.
Task<SnapshotRead> read_snapshot(k8s::Client& client, TimePoint deadline);

}  // namespace haulout::rehearse
