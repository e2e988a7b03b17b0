// Proves by sums that pods cannot all fit, in whatever order they are placed. Pure.
//
// Pods that only some nodes accept must share the resources of those nodes. If they request more in total, one of them
// does not fit. Anti-affinity and the packing of single nodes are ignored. So without such a proof the pods may still
// not fit.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "placement/room.hpp"

namespace haulout::placement {

class Sums {
 public:
  // Borrows `room`, whose nodes must not change.
  explicit Sums(const Room& room) : room_(room) {}

  // Records that the pod is now on `node` in the room. It could also be on any other node that accepts it.
  void placed(const Json& pod, const std::string& node);
  // Returns whether the pod cannot fit beside all recorded pods, even if it preempts pods of lower priority.
  bool too_many_with(const Json& pod);

 private:
  struct Placed {
    std::size_t site;
    Amounts requests;
  };
  // Pods that the same nodes accept.
  struct Alike {
    Sites admitting;
    std::vector<Placed> pods;
  };
  Alike& alike(const Json& pod);

  const Room& room_;
  std::map<std::string, Alike> groups_;  // by the pods' selector, node affinity and tolerations
};

}  // namespace haulout::placement
