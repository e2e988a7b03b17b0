#include "drain/eviction_pacing.hpp"

#include <algorithm>

namespace haulout::drain {

void RequestWindow::look(TimePoint now) {
  for (auto& [uid, request] : out_) {
    if (request.slow || now - request.since < slow) continue;
    request.slow = true;
    if (grows_) limit_ = std::max(usual_, std::min(limit_ + 1, most));
  }
}

TimePoint RequestWindow::next() const {
  TimePoint next = TimePoint::max();
  if (!grows_ || limit_ >= most) return next;
  for (const auto& [uid, request] : out_)
    if (!request.slow) next = std::min(next, request.since + slow);
  return next;
}

void RequestWindow::sent(const std::string& uid, const std::string& ns, TimePoint now) {
  out_.insert_or_assign(uid, Request{ns, now});
  ++namespaces_[ns];
}

void RequestWindow::answered(const std::string& uid, bool good) {
  const auto found = out_.find(uid);
  if (found == out_.end()) return;
  const Request request = std::move(found->second);
  out_.erase(found);
  if (const auto of_ns = namespaces_.find(request.ns); --of_ns->second == 0) namespaces_.erase(of_ns);
  if (!good) {
    grows_ = false;
    limit_ = usual_;
  } else if (request.slow) {
    grows_ = true;
  } else if (limit_ > usual_) {
    --limit_;
  }
}

TimePoint Signals::next(const std::string& budget, Cause cause) const {
  const auto found = entries_.find(budget);
  if (found == entries_.end() || cause == Cause::first) return TimePoint::min();
  const TimePoint spaced = found->second.counted_until - shortest;
  return cause == Cause::news ? spaced : std::max(found->second.turn, spaced);
}

bool Signals::under_way(const std::string& budget) const {
  const auto found = entries_.find(budget);
  return found != entries_.end() && found->second.under_way;
}

void Signals::sent(const std::string& budget, Cause cause, TimePoint now, Rng& rng) {
  Entry& entry = entries_[budget];
  entry.under_way = true;
  entry.turn = now + rng.between(shortest, longest);
  if (cause != Cause::first) entry.counted_until = std::max(entry.counted_until, now) + shortest;
}

void Signals::answered(const std::string& budget) {
  const auto found = entries_.find(budget);
  if (found != entries_.end()) found->second.under_way = false;
}

void Signals::begin(const std::string& budget, TimePoint now, Rng& rng) {
  const auto [entry, is_new] = entries_.try_emplace(budget);
  if (is_new) entry->second.turn = now + rng.between(shortest, longest);
}

void Signals::asked(const std::string& budget, TimePoint now, Rng& rng) {
  const auto found = entries_.find(budget);
  if (found != entries_.end()) found->second.turn = now + rng.between(shortest, longest);
}

void Signals::hasten(const std::string& budget, TimePoint now) {
  const auto found = entries_.find(budget);
  if (found != entries_.end()) found->second.turn = std::min(found->second.turn, now);
}

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
  // Many requests may have been in flight when the webhook became unreachable. Their failures count as one.
  if (is_new || in_turn) entry.ask_at = now + entry.backoff.next(rng);
}

void DownWebhooks::lost(const std::string& name, const std::string& uid, TimePoint now, Rng& rng) {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.asked_for != uid) return;
  found->second.asked_for.clear();
  found->second.ask_at = now + found->second.backoff.next(rng);
}

}  // namespace haulout::drain
