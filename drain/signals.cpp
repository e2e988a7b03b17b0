#include "drain/signals.hpp"

#include <algorithm>

namespace haulout::drain {

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

}  // namespace haulout::drain
