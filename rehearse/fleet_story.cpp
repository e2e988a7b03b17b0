// Figures from the phases of nodes. Pure.
#include "rehearse/fleet_rehearsal.hpp"

namespace haulout::rehearse {
namespace {

template <class Predicate>
Duration time_in(const FleetNode& node, WallTime end, Predicate counts) {
  Duration sum{};
  for (const FleetPhase& phase : node.phases)
    if (counts(phase.state)) sum += phase.until.value_or(end) - phase.from;
  return sum;
}

}  // namespace

bool is_out(agent::State state) {
  return state == agent::State::draining || state == agent::State::ready || state == agent::State::rebooting ||
         state == agent::State::verifying || state == agent::State::uncordoning;
}

std::optional<WallTime> turn_of(const FleetNode& node) {
  for (const FleetPhase& phase : node.phases)
    if (phase.state == agent::State::draining) return phase.from;
  return std::nullopt;
}

Duration drained_in(const FleetNode& node, WallTime end) {
  return time_in(node, end, [](agent::State state) { return state == agent::State::draining; });
}

Duration out_of_service(const FleetNode& node, WallTime end) {
  return time_in(node, end, is_out);
}

std::size_t most_out_at_once(const std::vector<FleetNode>& nodes) {
  // A node that returns at the moment at which another one leaves was not unavailable together with it: -1 sorts before
  // +1.
  std::vector<std::pair<WallTime, int>> steps;
  for (const FleetNode& node : nodes)
    for (const FleetPhase& phase : node.phases) {
      if (!is_out(phase.state)) continue;
      steps.emplace_back(phase.from, 1);
      if (phase.until) steps.emplace_back(*phase.until, -1);
    }
  std::sort(steps.begin(), steps.end());
  int out = 0;
  int most = 0;
  for (const auto& [at, step] : steps) most = std::max(most, out += step);
  return static_cast<std::size_t>(most);
}

}  // namespace haulout::rehearse
