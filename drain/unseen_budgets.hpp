// Schedules retries for pods that are held by budgets which the drain may not read. No watch event shows when such a
// budget allows a disruption, so the drain retries one pod of a group at a time, less and less often, until an eviction
// succeeds. The drain cannot see which pods such a budget selects, so the pods of one controller form a group. Pure
// bookkeeping.
#pragma once

#include <map>
#include <string>

#include "k8s/objects.hpp"
#include "retry/backoff.hpp"

namespace haulout::drain {

class UnseenBudgets {
 public:
  // Returns the UID of the pod's controller, or of the pod if it has none.
  static const std::string& group_of(const k8s::Pod& pod) { return pod.controller ? pod.controller->uid : pod.uid; }

  // Returns the earliest time for the next retry in the group.
  TimePoint next(const std::string& group) const {
    const auto found = entries_.find(group);
    return found == entries_.end() ? TimePoint::min() : found->second.ask_at;
  }
  // A budget refused a pod of the group. Postpones the next retry, unless the refusal comes before that is due: then it
  // answers the first eviction of another pod.
  void refused(const std::string& group, std::optional<std::chrono::milliseconds> retry_after, TimePoint now,
               Rng& rng) {
    Entry& entry = entries_[group];
    if (now >= entry.ask_at) entry.ask_at = now + entry.backoff.next(rng, retry_after);
  }
  // An eviction in the group succeeded. Returns true if a pod of the group was refused before, so that others may wait.
  bool let_go(const std::string& group) { return entries_.erase(group) > 0; }

 private:
  struct Entry {
    TimePoint ask_at = TimePoint::min();
    // In the long run at most two retries per minute, as for a budget that the drain can read (Signals).
    Backoff backoff{{std::chrono::seconds(5), 1.5, std::chrono::seconds(60), BackoffOptions::Jitter::equal}};
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace haulout::drain
