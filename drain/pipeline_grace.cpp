// Pipeline: shortens the grace period of pods that are already terminating with a longer one than the options ask for.
// Another client, or an earlier drain, has deleted them. The server accepts a shorter grace period without asking any
// budget. It ignores the same or a longer one. Such a request takes no place and no lane.
#include <algorithm>
#include <limits>

#include "drain/pipeline.hpp"

namespace haulout::drain {

bool Pipeline::to_be_shortened(const TrackedPod& tracked) const {
  if (!options_.grace_seconds || tracked.grace_given || tracked.request_out || waits_for_all_others(tracked))
    return false;
  if (tracked.state != PodState::terminating || !tracked.pod.terminating()) return false;
  if (tracked.decision.verdict != Verdict::evict) return false;
  constexpr auto unset = std::numeric_limits<std::int64_t>::max();
  return tracked.pod.deletion_grace_seconds.value_or(unset) > std::max<std::int64_t>(*options_.grace_seconds, 0);
}

void Pipeline::take_shortenings(Taking& taking) {
  if (!options_.grace_seconds || count_of(PodState::terminating) == 0) return;
  for (TrackedPod* tracked : order_) {
    if (!to_be_shortened(*tracked) || tracked->shorten_at > taking.now || !window_.takes(tracked->pod.ns)) continue;
    tracked->request_out = tracked->shortening = true;
    window_.sent(tracked->pod.uid, tracked->pod.ns, taking.now);
    ++tracked->report.attempts;
    tracked->lane.clear();
    emit_(EventType::eviction_sent, tracked->report);
    taking.evictions.push_back(tracked->pod);
  }
}

// Handles a failed request. If no retry can resolve the error, the pod keeps the grace period that it has.
void Pipeline::not_shortened(TrackedPod& tracked, const Error& error, TimePoint now) {
  const EvictionVerdict verdict = classify_eviction(error);
  const bool final = verdict == EvictionVerdict::gone || verdict == EvictionVerdict::replaced ||
                     verdict == EvictionVerdict::forbidden || verdict == EvictionVerdict::fatal;
  tracked.grace_given = final;
  tracked.shorten_at = now + tracked.backoff.next(rng_, error.retry_after);
  tracked.report.message = "its grace period could not be shortened: " + error.message();
}

}  // namespace haulout::drain
