// The objects of a cluster, as they were at one moment. Plain data.
#pragma once

#include <string>
#include <vector>

#include "retry/clock.hpp"

namespace haulout::rehearse {

struct Document {
  std::string text;    // as kubectl prints it: a List or single objects, JSON or YAML
  std::string file{};  // the file that it was read from; empty if there is none
};

struct Snapshot {
  std::vector<Document> documents{};
  WallTime read_at{};
  // True if the documents come from files. Then the moment of the snapshot is the newest time in them, and not
  // `read_at`, which may be days later.
  bool stored = false;
};

}  // namespace haulout::rehearse
