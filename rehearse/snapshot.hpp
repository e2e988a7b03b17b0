// A snapshot: the objects of a cluster at one moment, from which a rehearsal starts. It is read from files or from the
// API server of a running cluster.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "k8s/client.hpp"
#include "retry/clock.hpp"

namespace haulout::rehearse {

struct Document {
  std::string text;    // objects as kubectl prints them: a List or single objects, JSON or YAML
  std::string file{};  // path of the file with the text; empty if it is not from a file
  // The text is only in the file, and is read from it in pieces: it may be several times as large as its objects.
  bool in_file = false;
  // The file was found in a directory, and not named by a person: what is no Kubernetes object in it is skipped.
  bool found = false;
};

// A file, or a document in it, that was skipped because it is no Kubernetes object.
struct Skipped {
  enum class Why { hidden, kustomization, chart, is_template, no_object } why;
  std::string file;
};

struct Snapshot {
  std::vector<Document> documents{};
  WallTime read_at{};
  // True if the documents were read from files. The time of the snapshot is then the newest time in them, because
  // `read_at` may be days later.
  bool stored = false;
  std::vector<Skipped> skipped{};  // files that are not in the documents
};

// How far a rehearsal has come. It first reads all objects of its snapshot.
struct StepProgress {
  enum class Step { reading, rehearsing } step = Step::reading;
  std::size_t done = 0;   // objects that were read, or nodes of a fleet that have finished
  std::size_t total = 0;  // nodes with an agent; 0 while the snapshot is read, because it does not say how many it has
};
// Called often. Must not throw.
using OnProgress = std::function<void(const StepProgress&)>;

struct SnapshotRead {
  Snapshot snapshot;
  // Kinds that are missing because the caller may not list them, each with the server's error message.
  std::vector<std::string> left_out{};
};

// Lists the objects in pages, each kind in its most recent state. `more` are further kinds to list, as plurals. If the
// caller may not list a kind other than nodes and pods, adds it to `left_out` and continues. Fails with any other error
// of a list. Cancellable. Borrows the client.
Task<SnapshotRead> read_snapshot(k8s::Client& client, TimePoint deadline, std::vector<std::string> more = {});

}  // namespace haulout::rehearse
