#include "drain/down_webhooks.hpp"

namespace haulout::drain {

TimePoint DownWebhooks::next(const std::string& name) const {
  const Entry& entry = entries_.at(name);
  return entry.asked_for.empty() ? entry.ask_at : TimePoint::max();
}

void DownWebhooks::sent(const std::string& name, const std::string& uid) {
  const auto found = entries_.find(name);
  if (found != entries_.end()) found->second.asked_for = uid;
}

void DownWebhooks::refused(const std::string& name, const std::string& uid, TimePoint now, Rng& rng) {
  const auto [found, is_new] = entries_.try_emplace(name);
  Entry& entry = found->second;
  const bool in_turn = entry.asked_for == uid;
  if (in_turn) entry.asked_for.clear();
  // Many requests were in flight when the webhook went down. Their failures count as one.
  if (is_new || in_turn) entry.ask_at = now + entry.backoff.next(rng);
}

void DownWebhooks::lost(const std::string& name, const std::string& uid, TimePoint now, Rng& rng) {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.asked_for != uid) return;
  found->second.asked_for.clear();
  found->second.ask_at = now + found->second.backoff.next(rng);
}

}  // namespace haulout::drain
