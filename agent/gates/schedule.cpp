#include <fmt/format.h>

#include "agent/gates/window.hpp"

namespace haulout::agent {
namespace {

constexpr std::chrono::days two_years(731);
// Times are clamped to this range: the calendar of the standard library ends in the year 32767, and a wrong clock may
// be beyond it.
constexpr WallTime first_time = std::chrono::sys_days(std::chrono::year(1) / 1 / 1);
constexpr WallTime last_time = std::chrono::sys_days(std::chrono::year(9990) / 1 / 1);

WallTime believable(WallTime at) {
  return std::clamp(at, first_time, last_time);
}

std::optional<WallTime> end_of(const Window& window, WallTime at) {
  return window.recurrence.end_of(at);
}

std::optional<WallTime> end_of(const Blackout& blackout, WallTime at) {
  if (const auto* recurrence = std::get_if<Recurrence>(&blackout.when)) return recurrence->end_of(at);
  const auto& interval = std::get<Interval>(blackout.when);
  return interval.contains(at) ? std::optional(interval.end) : std::nullopt;
}

std::optional<WallTime> next_start(const Window& window, WallTime at, WallTime horizon) {
  return window.recurrence.next_start(at, horizon);
}

std::optional<WallTime> next_start(const Blackout& blackout, WallTime at, WallTime horizon) {
  if (const auto* recurrence = std::get_if<Recurrence>(&blackout.when)) return recurrence->next_start(at, horizon);
  const auto& interval = std::get<Interval>(blackout.when);
  return interval.begin > at && interval.begin < horizon ? std::optional(interval.begin) : std::nullopt;
}

// The latest end of all sources that contain `at`; nothing if there is none.
template <class Source>
std::optional<WallTime> latest_end(const std::vector<Source>& sources, WallTime at) {
  std::optional<WallTime> end;
  for (const Source& source : sources) {
    const auto its = end_of(source, at);
    if (its && (!end || *its > *end)) end = its;
  }
  return end;
}

template <class Source>
std::optional<WallTime> earliest_start(const std::vector<Source>& sources, WallTime at, WallTime horizon) {
  std::optional<WallTime> start;
  for (const Source& source : sources) {
    const auto its = next_start(source, at, start ? *start : horizon);
    if (its) start = its;
  }
  return start;
}

}  // namespace

Schedule::Schedule(std::vector<Window> windows, std::vector<Blackout> blackouts)
    : windows_(std::move(windows)), blackouts_(std::move(blackouts)) {}

bool Schedule::always() const {
  return windows_.empty() && blackouts_.empty();
}

bool Schedule::in_window(WallTime at) const {
  return windows_.empty() || latest_end(windows_, at).has_value();
}

// The end of the window that contains `at`. Windows that touch or overlap count as one.
std::optional<WallTime> Schedule::window_end(WallTime at, WallTime horizon) const {
  if (windows_.empty()) return std::nullopt;
  while (at < horizon) {
    const auto end = latest_end(windows_, at);
    if (!end) return at;
    at = *end;
  }
  return std::nullopt;
}

std::optional<WallTime> Schedule::next_opening(WallTime now, WallTime horizon) const {
  for (WallTime at = now; at < horizon;) {
    if (const auto blacked_out = latest_end(blackouts_, at)) {
      at = *blacked_out;
    } else if (in_window(at)) {
      return at;
    } else if (const auto start = earliest_start(windows_, at, horizon)) {
      at = *start;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

Schedule::State Schedule::at(WallTime now) const {
  now = believable(now);
  const WallTime horizon = now + two_years;
  if (latest_end(blackouts_, now) || !in_window(now)) {
    return {.open = false, .next_open = next_opening(now, horizon)};
  }
  const auto end = window_end(now, horizon);
  const auto blackout = earliest_start(blackouts_, now, end ? *end : horizon);
  return {.open = true, .until = blackout ? blackout : end};
}

bool Schedule::fits(WallTime start, Duration needed) const {
  const State state = at(start);
  return state.open && (!state.until || *state.until - believable(start) >= needed);
}

std::optional<WallTime> Schedule::next_fit(WallTime from, Duration needed) const {
  from = believable(from);
  for (WallTime at = from; at < from + two_years;) {
    const State state = this->at(at);
    if (state.open && (!state.until || *state.until - at >= needed)) return at;
    const auto next = state.open ? state.until : state.next_open;
    if (!next) return std::nullopt;
    at = *next;
  }
  return std::nullopt;
}

std::string Schedule::shown(WallTime at) const {
  at = believable(at);
  if (!windows_.empty()) return windows_.front().recurrence.zone().shown(at);
  return (blackouts_.empty() ? Zone() : blackouts_.front().zone).shown(at);
}

std::string Schedule::describe(WallTime now) const {
  if (always()) return "no window is set: always open";
  now = believable(now);
  const State state = at(now);
  if (state.open) {
    return windows_.empty()
               ? fmt::format("outside the blackouts: {}", state.until ? "the next one begins " + shown(*state.until)
                                                                      : "none begins within two years")
               : fmt::format("inside the window: it closes {}",
                             state.until ? shown(*state.until) : "not within two years");
  }
  if (windows_.empty() || (in_window(now) && latest_end(blackouts_, now))) {
    const auto cause = std::find_if(blackouts_.begin(), blackouts_.end(),
                                    [&](const Blackout& blackout) { return end_of(blackout, now).has_value(); });
    const std::string where = fmt::format("in the blackout \"{}\"", cause->text);
    return state.next_open ? fmt::format("{}: it opens again {}", where, shown(*state.next_open))
                           : where + ": nothing opens within two years";
  }
  return state.next_open ? "outside the window: next one opens " + shown(*state.next_open)
                         : "outside the window: none opens within two years";
}

}  // namespace haulout::agent
