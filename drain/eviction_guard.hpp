// What the pipeline asks, before it evicts a pod, besides budgets and places: guards keep books of their own and say
// whether the pod may go now. A pod that one of them holds back is parked, so it holds no place and no tier up (P9).
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
    TimePoint until = TimePoint::max();  // looked at again then; before that by events alone
  };

  // Of a pod; perhaps: the answer to its eviction was lost, and it waits to be asked once more; unawaited: it is on its
  // way out, and nobody waits for it any more.
  enum class Leaves { no, perhaps, unawaited, yes };

  virtual ~EvictionGuard() = default;
  // Nothing when the pod may be evicted now, as far as this guard is concerned.
  virtual std::optional<Hold> held(const k8s::Pod& pod, TimePoint now) = 0;
  // A pod is on its way out or has gone; or not, after all.
  virtual void leaving(const k8s::Pod& pod, Leaves leaves) = 0;

 protected:
  EvictionGuard() = default;
  EvictionGuard(const EvictionGuard&) = default;
  EvictionGuard& operator=(const EvictionGuard&) = default;
};

}  // namespace haulout::drain
