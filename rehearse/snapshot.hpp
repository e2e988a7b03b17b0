// The objects of a cluster, as they were at one moment.
#pragma once

#include <string>
#include <vector>

#include "retry/clock.hpp"

namespace haulout::rehearse {

struct Document {
  std::string text;    // as kubectl prints it: Lists, single objects, JSON or YAML
  std::string file{};  // that it lay in; empty: none
};

struct Snapshot {
  std::vector<Document> documents{};
  WallTime read_at{};
  // It lay in files: that moment is the newest time in them, not the one at which they were read, days later perhaps.
  bool stored = false;
};

}  // namespace haulout::rehearse
