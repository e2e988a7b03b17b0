// Admission webhooks that cannot be called, by name. Of all pods whose evictions such a webhook blocks, the drain tries
// one at a time, with growing pauses, until the webhook answers again. Pure bookkeeping, no I/O.
#pragma once

#include <map>
#include <string>

#include "retry/backoff.hpp"

namespace haulout::drain {

class DownWebhooks {
 public:
  bool contains(const std::string& name) const { return entries_.contains(name); }
  // The earliest time to try one of its pods; max() while such a try is in flight. `name` must be contained.
  TimePoint next(const std::string& name) const;

  void sent(const std::string& name, const std::string& uid);
  // The server could not call the webhook for this pod.
  void refused(const std::string& name, const std::string& uid, TimePoint now, Rng& rng);
  // The response to the try of this pod was lost, which says nothing about the webhook.
  void lost(const std::string& name, const std::string& uid, TimePoint now, Rng& rng);
  // The webhook could be called.
  void back(const std::string& name) { entries_.erase(name); }

 private:
  struct Entry {
    std::string asked_for{};  // UID of the pod whose try is in flight; empty: none
    TimePoint ask_at{};
    // The first pause is short, because most webhooks are back at once. The longest is that after a denial by
    // admission.
    Backoff backoff{{std::chrono::seconds(1), 2.0, std::chrono::seconds(30), BackoffOptions::Jitter::equal}};
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace haulout::drain
