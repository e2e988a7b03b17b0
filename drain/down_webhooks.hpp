// Admission webhooks that cannot be called, by name: of all pods whose evictions they stand in the way of, one in turn
// is asked for, ever more rarely, until one gets past. Pure bookkeeping.
#pragma once

#include <map>
#include <string>

#include "retry/backoff.hpp"

namespace haulout::drain {

class DownWebhooks {
 public:
  bool contains(const std::string& name) const { return entries_.contains(name); }
  // The earliest time to ask for one of its pods; max() while one is being asked for. Only of those it contains.
  TimePoint next(const std::string& name) const;

  void sent(const std::string& name, const std::string& uid);
  // The server could not call it for this pod.
  void refused(const std::string& name, const std::string& uid, TimePoint now, Rng& rng);
  // The answer to the pod that was asked for in turn is lost: that says nothing of the webhook.
  void lost(const std::string& name, const std::string& uid, TimePoint now, Rng& rng);
  // It could be called.
  void back(const std::string& name) { entries_.erase(name); }

 private:
  struct Entry {
    std::string asked_for{};  // UID
    TimePoint ask_at{};
    // The first pause is short: most are back at once. Later as for admission that denies.
    Backoff backoff{{std::chrono::seconds(1), 2.0, std::chrono::seconds(30), BackoffOptions::Jitter::equal}};
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace haulout::drain
