#include "agent/gates/gate.hpp"

#include "agent/duration.hpp"

namespace haulout::agent {
namespace {

Gate too_short(const GateInputs& inputs, WallTime closes) {
  const auto next = inputs.schedule.next_fit(closes, inputs.needed);
  return {.name = "window",
          .open = false,
          .reason = "WindowTooShort",
          .message = fmt::format("the window closes {}, and an update of this node takes about {}; {}",
                                 inputs.schedule.shown(closes), format_duration(inputs.needed),
                                 next ? "it begins " + inputs.schedule.shown(*next)
                                      : "no window of the next two years is that long: write a longer one"),
          .look_again = next};
}

Gate window_gate(const GateInputs& inputs) {
  const Schedule::State state = inputs.schedule.at(inputs.now);
  if (state.open && state.until && !inputs.schedule.fits(inputs.now, inputs.needed))
    return too_short(inputs, *state.until);
  return {.name = "window",
          .open = state.open,
          .reason = state.open ? "" : "OutsideWindow",
          .message = inputs.schedule.describe(inputs.now),
          .look_again = state.open ? state.until : state.next_open};
}

Gate pause_gate(std::string name, const std::string& whom, const std::optional<Pause>& pause, WallTime now) {
  if (!pause) return {.name = std::move(name), .message = whom + " is not paused"};
  if (!in_force(*pause, now)) return {.name = std::move(name), .message = "the pause of " + whom + " is over"};
  return {.name = std::move(name),
          .open = false,
          .reason = "Paused",
          .message = fmt::format("{} is {}", whom, describe(*pause)),
          .look_again = pause->until};
}

Gate brake_gate(const GateInputs& inputs) {
  auto brake = reboot_brake(inputs.past, inputs.wanted, inputs.now, inputs.reboots_per_day);
  if (!brake) return {.name = "reboot-brake", .message = "a reboot now would be no loop"};
  return {.name = "reboot-brake",
          .open = false,
          .reason = std::move(brake->reason),
          .message = std::move(brake->message),
          .look_again = brake->look_again};
}

}  // namespace

std::vector<Gate> gates(const GateInputs& inputs) {
  const std::vector<Gate> rows = {
      window_gate(inputs), pause_gate("pause-node", "this node", inputs.node_pause, inputs.now),
      pause_gate("pause-pool", "pool " + inputs.pool, inputs.pool_pause, inputs.now),
      pause_gate("pause-cluster", "the cluster", inputs.cluster_pause, inputs.now), brake_gate(inputs)};
  std::vector<Gate> ordered;
  for (const bool open : {false, true}) {
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(ordered),
                 [&](const Gate& gate) { return gate.open == open; });
  }
  return ordered;
}

}  // namespace haulout::agent
