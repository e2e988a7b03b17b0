// Interface of guards: conditions that the pipeline checks before it evicts a pod, in addition to budgets and places.
// Each guard keeps its own state, and decides whether the pod may be evicted now. If not, the pod is parked, so it
// holds no place and does not delay later tiers (P9). No I/O.
#pragma once

#include <optional>
#include <string>

#include "k8s/objects.hpp"
#include "retry/clock.hpp"

namespace haulout::drain {

class EvictionGuard {
 public:
  struct Hold {
    std::string reason;
    std::string message;
    TimePoint until = TimePoint::max();  // when the pipeline checks the guard again; an event may cause that earlier
  };

  // State of a pod. `perhaps`: the response to its eviction was lost, and the eviction will be sent again. `unawaited`:
  // it is terminating, but the drain does not wait for it any more.
  enum class Leaves { no, perhaps, unawaited, yes };

  virtual ~EvictionGuard() = default;
  // Returns nullopt if this guard allows the eviction of the pod now.
  virtual std::optional<Hold> held(const k8s::Pod& pod, TimePoint now) = 0;
  // Called when a pod is evicted, is terminating or was deleted, or when that turns out not to be so.
  virtual void leaving(const k8s::Pod& pod, Leaves leaves) = 0;

 protected:
  EvictionGuard() = default;
  EvictionGuard(const EvictionGuard&) = default;
  EvictionGuard& operator=(const EvictionGuard&) = default;
};

}  // namespace haulout::drain
