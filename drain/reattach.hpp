// Decides whether a drain waits until a volume that was detached from this node is attached to another node. Pure.
//
// The wait only paces the drain: it spares storage that attaches slowly, since the next pod leaves later. No outcome of
// a drain may depend on it, because the drain cannot bring the attachment about: the pod may find no node, it may have
// been scaled down, or the drain may just have evicted the scheduler.
#pragma once

#include "drain/report.hpp"

namespace haulout::drain {

// Kubernetes creates the VolumeAttachment of a replacement pod as soon as the pod has a node. If there is none this
// long after the volume was detached, the drain stops waiting for the volume.
inline constexpr Duration claim_hold = std::chrono::seconds(30);
// The waits end this long before the deadline of the drain, so that its final requests can be answered in time.
inline constexpr Duration reattach_margin = std::chrono::seconds(30);

struct ReattachFacts {
  enum class Elsewhere { nowhere, attaching, attached };  // most advanced state on any other node

  bool comes_back = false;  // a pod that used it has a controller, had not finished, and its claim outlives it
  bool used_here = false;   // a pod of this node uses its claim, or the volume is attached here again
  Elsewhere elsewhere = Elsewhere::nowhere;
  TimePoint now{};
  TimePoint detached_at{};
  Duration limit{};                    // longest wait since `detached_at`; 0 disables the wait
  TimePoint until = TimePoint::max();  // latest end of all waits of this drain
};

// Returns the next state of the wait. A wait that has ended does not start again: only `attached` can follow
// `unclaimed` and `late`.
Reattach decide_reattach(Reattach before, const ReattachFacts& facts);
// Returns the time at which that state can change without an event; max() if never.
TimePoint reattach_wake(Reattach now, const ReattachFacts& facts);

}  // namespace haulout::drain
