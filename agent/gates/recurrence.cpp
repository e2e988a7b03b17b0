#include "agent/gates/recurrence.hpp"

namespace haulout::agent {
namespace {

using std::chrono::days;
using std::chrono::local_days;
using std::chrono::minutes;
using std::chrono::seconds;

local_days day_of(const Zone& zone, WallTime at) {
  return std::chrono::floor<days>(zone.local(at));
}

minutes end_on_clock(minutes start, minutes end) {
  return end > start ? end : end + days(1);
}

// Keeps only the first of all starts with the same end. At most one start before the end's time of day is left, and one
// after it.
std::vector<minutes> first_per_end(const std::vector<minutes>& times, minutes end) {
  std::vector<minutes> kept;
  for (const minutes time : times) {
    if (kept.empty() || end_on_clock(kept.back(), end) != end_on_clock(time, end)) kept.push_back(time);
  }
  return kept;
}

// Appends `next`, or merges it into the last piece. The caller passes the pieces in ascending order of `begin`.
template <class Piece>
void append_merged(std::vector<Piece>& pieces, const Piece& next) {
  if (!pieces.empty() && next.begin <= pieces.back().end)
    pieces.back().end = std::max(pieces.back().end, next.end);
  else
    pieces.push_back(next);
}

}  // namespace

Recurrence::Recurrence(Days on_days, std::vector<minutes> times, Length length, Zone zone)
    : days_(on_days), times_(std::move(times)), length_(length), zone_(std::move(zone)), looks_back_(2) {
  if (const auto* until = std::get_if<UntilClock>(&length_)) {
    times_ = first_per_end(times_, until->time);
    return;
  }
  const seconds elapsed = std::get<ForElapsed>(length_).length;
  looks_back_ += std::chrono::ceil<days>(elapsed);
  for (const minutes time : times_) append_merged(spans_, Span{time, time + elapsed});
}

Interval Recurrence::starting(local_days day, minutes time) const {
  const WallTime begin = zone_.instant(day + time);
  if (const auto* until = std::get_if<UntilClock>(&length_)) {
    return {begin, zone_.instant(day + end_on_clock(time, until->time))};
  }
  return {begin, begin + std::get<ForElapsed>(length_).length};
}

std::vector<Interval> Recurrence::on(local_days day) const {
  std::vector<Interval> found;
  if (!days_.contains(std::chrono::year_month_day(day))) return found;
  const WallTime midnight = zone_.instant(day);
  const bool steady = zone_.instant(day + days(1)) - midnight == days(1) && zone_.local(midnight) == LocalTime(day);
  if (steady && !spans_.empty()) {
    for (const Span& span : spans_) found.push_back({midnight + span.begin, midnight + span.end});
    return found;
  }
  for (const minutes time : times_) {
    const Interval next = starting(day, time);
    if (next.begin < next.end) append_merged(found, next);
  }
  return found;
}

std::optional<WallTime> Recurrence::end_of(WallTime at) const {
  std::optional<WallTime> end;
  const local_days today = day_of(zone_, at);
  // Includes tomorrow: a clock that is set back over midnight shows the old day again after the new one has begun.
  for (local_days day = today - looks_back_; day <= today + days(1); day += days(1)) {
    for (const Interval& interval : on(day)) {
      if (interval.contains(at) && (!end || interval.end > *end)) end = interval.end;
    }
  }
  return end;
}

std::optional<WallTime> Recurrence::next_start(WallTime at, WallTime horizon) const {
  const local_days last = day_of(zone_, horizon) + days(1);
  for (local_days day = day_of(zone_, at) - days(1); day <= last; day += days(1)) {
    for (const Interval& interval : on(day)) {
      if (interval.begin > at) return interval.begin < horizon ? std::optional(interval.begin) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace haulout::agent
