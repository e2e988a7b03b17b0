#include "agent/gates/gate.hpp"

#include <fmt/format.h>

#include "agent/gates/duration_history.hpp"
#include "base/duration.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace {

using Verdict = Gate::Verdict;

constexpr Duration turn_takes = std::chrono::minutes(1);
// Margin for an update that begins at the start of a window: the agent needs a moment to reach that point.
constexpr Duration to_be_sure = 2 * turn_takes;

// Time that an update needs within a window, see window_gate().
Duration room(const Schedule& schedule, const std::vector<std::chrono::seconds>& took, WallTime now) {
  const Duration longest = estimated_update(took);
  return schedule.next_fit(now, longest + to_be_sure) ? longest : ordinary_update(took);
}

Gate too_short(const Schedule& schedule, Duration needed, WallTime closes) {
  const auto next = schedule.next_fit(closes, needed + to_be_sure);
  return {.name = "window",
          .verdict = Verdict::closed,
          .reason = reason::window_too_short,
          .message = fmt::format("the window closes {}, and an update of this node takes about {}; {}",
                                 schedule.shown(closes), format_duration(needed),
                                 next ? "it begins " + schedule.shown(*next)
                                      : "no window of the next two years is long enough: configure a longer one"),
          .look_again = next};
}

}  // namespace

Gate window_gate(const Schedule& schedule, const std::vector<std::chrono::seconds>& took, bool with_turn,
                 WallTime now) {
  const Schedule::State state = schedule.at(now);
  if (state.open && state.until) {
    const Duration needed = room(schedule, took, now);
    if (!schedule.fits(now, with_turn ? needed : needed + turn_takes)) return too_short(schedule, needed, *state.until);
  }
  return {.name = "window",
          .verdict = state.open ? Verdict::open : Verdict::closed,
          .reason = state.open ? "" : reason::outside_window,
          .message = schedule.describe(now),
          .look_again = state.open ? state.until : state.next_open};
}

Gate pause_gate(std::string name, const std::string& whom, const std::optional<Pause>& pause, WallTime now) {
  Gate gate{.name = std::move(name), .message = whom + " is not paused", .effect = Gate::Effect::gives_up};
  if (!pause) return gate;
  if (!in_force(*pause, now)) {
    gate.message = "the pause of " + whom + " has ended";
    return gate;
  }
  gate.verdict = Verdict::closed;
  gate.reason = reason::paused;
  gate.message = fmt::format("{} is {}", whom, describe(*pause));
  gate.look_again = pause->until;
  return gate;
}

Gate brake_gate(const std::vector<PastReboot>& past, const Pending& wanted, bool requested, WallTime now,
                std::size_t per_day) {
  Gate gate{.name = "reboot-brake", .message = "a reboot now would not be a loop", .effect = Gate::Effect::degrades};
  auto brake = reboot_brake(past, wanted, now, per_day);
  if (!brake) return gate;
  if (requested) {
    gate.message = "a person has requested this reboot, although " + brake->message;
    return gate;
  }
  gate.verdict = Verdict::closed;
  gate.reason = std::move(brake->reason);
  gate.message = std::move(brake->message);
  gate.look_again = brake->look_again;
  return gate;
}

std::vector<Gate> closed_first(const std::vector<Gate>& rows) {
  std::vector<Gate> ordered;
  for (const bool closed : {true, false})
    for (const Gate& gate : rows)
      if (gate.closed() == closed) ordered.push_back(gate);
  return ordered;
}

}  // namespace haulout::agent
