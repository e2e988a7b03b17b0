// Pods that budgets hold back which we may not see: no event tells when one opens, so one pod in turn is asked for,
// ever more rarely, until one gets past. A budget that is seen tells which pods it is about; here those of one
// controller stand for them. Pure bookkeeping, by group.
#pragma once

#include <map>
#include <string>

#include "k8s/objects.hpp"
#include "retry/backoff.hpp"

namespace haulout::drain {

class UnseenBudgets {
 public:
  // Its controller, or the pod itself where it has none.
  static const std::string& group_of(const k8s::Pod& pod) { return pod.controller ? pod.controller->uid : pod.uid; }

  // The earliest time to ask for one of its pods again.
  TimePoint next(const std::string& group) const {
    const auto found = entries_.find(group);
    return found == entries_.end() ? TimePoint::min() : found->second.ask_at;
  }
  // Those that are asked for the first time do not put it off.
  void refused(const std::string& group, std::optional<std::chrono::milliseconds> retry_after, TimePoint now,
               Rng& rng) {
    Entry& entry = entries_[group];
    if (now >= entry.ask_at) entry.ask_at = now + entry.backoff.next(rng, retry_after);
  }
  // True when others of the group wait.
  bool let_go(const std::string& group) { return entries_.erase(group) > 0; }

 private:
  struct Entry {
    TimePoint ask_at = TimePoint::min();
    // In the long run no more than two a minute, as for a budget that is seen (Signals).
    Backoff backoff{{std::chrono::seconds(5), 1.5, std::chrono::seconds(60), BackoffOptions::Jitter::equal}};
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace haulout::drain
