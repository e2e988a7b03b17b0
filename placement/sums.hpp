// Whether pods cannot all find room, whatever the order in which they are placed: by sums. Pure.
//
// Pods that only some nodes take must share what those have. Where that is less than they request together, one of them
// goes without. Anti-affinity, and how pods fill single nodes, are left out: where there is no proof they may all the
// same not fit.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "placement/room.hpp"

namespace haulout::placement {

class Sums {
 public:
  // `room` outlives it; its nodes stay as they are.
  explicit Sums(const Room& room) : room_(room) {}

  // It stands there in the room from now on, and could as well stand on any other node that takes it.
  void placed(const Json& pod, const std::string& node);
  // This one cannot have room beside all of those, even if it preempts pods of lower priority.
  bool too_many_with(const Json& pod);

 private:
  struct Placed {
    std::size_t site;
    Amounts requests;
  };
  // Pods that the same nodes take.
  struct Alike {
    Sites admitting;
    std::vector<Placed> pods;
  };
  Alike& alike(const Json& pod);

  const Room& room_;
  std::map<std::string, Alike> groups_;  // by what decides about it
};

}  // namespace haulout::placement
