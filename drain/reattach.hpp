// Whether a drain goes on waiting for a volume, detached here, to be attached to another node. Pure.
//
// Advice, never a condition: storage that attaches slowly is spared when the next pod leaves only after that. But the
// pod may have nowhere to go, may have been scaled down, or its scheduler may be the one that has just been evicted:
// nothing that the drained node can do makes it happen, so no outcome may depend on it.
#pragma once

#include "drain/report.hpp"

namespace haulout::drain {

// A pod that was brought back elsewhere has its VolumeAttachment made as soon as it has a node. Who shows none this
// long after the volume became free is not waited for.
inline constexpr Duration claim_hold = std::chrono::seconds(30);
// This much of a drain's time is left to its end: the last questions have to be answered before the deadline.
inline constexpr Duration reattach_margin = std::chrono::seconds(30);

struct ReattachFacts {
  enum class Elsewhere { nowhere, attaching, attached };  // the furthest of all other nodes

  bool comes_back = false;  // a pod that used it has a controller, had not finished, and leaves its claim behind
  bool used_here = false;   // a pod of this node uses its claim, or it is attached here, once more
  Elsewhere elsewhere = Elsewhere::nowhere;
  TimePoint now{};
  TimePoint detached_at{};
  Duration limit{};                    // 0: not waited for
  TimePoint until = TimePoint::max();  // of the drain
};

// Once the wait is over it is over; all that can follow is that the volume is attached after all.
Reattach decide_reattach(Reattach before, const ReattachFacts& facts);
// When that can change without an event; max() if never.
TimePoint reattach_wake(Reattach now, const ReattachFacts& facts);

}  // namespace haulout::drain
