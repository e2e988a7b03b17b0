// The objects of a cluster, as they were at one moment.
#pragma once

#include <string>
#include <vector>

#include "retry/clock.hpp"

namespace haulout::agent {

struct Snapshot {
  std::vector<std::string> documents{};  // as kubectl prints them: Lists, single objects, JSON or YAML
  WallTime read_at{};
  // It lay in files: that moment is the newest time in them, not the one at which they were read, days later perhaps.
  bool stored = false;
};

}  // namespace haulout::agent
