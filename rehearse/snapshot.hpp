// A snapshot: the objects of a cluster as they were at one moment, from which a rehearsal starts. Plain data.
#pragma once

#include <string>
#include <vector>

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

}  // namespace haulout::rehearse
