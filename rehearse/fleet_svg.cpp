#include "rehearse/fleet_svg.hpp"

#include <fmt/format.h>
#include "base/duration.hpp"
#include "rehearse/svg_chart.hpp"

namespace haulout::rehearse {
namespace {

// Returns the CSS class of a state. Empty if the chart shows nothing, since the agent does nothing in that state.
std::string_view class_of(agent::State state) {
  switch (state) {
    case agent::State::draining: return "drains";
    case agent::State::ready:
    case agent::State::rebooting:
    case agent::State::verifying:
    case agent::State::uncordoning: return "reboots";
    case agent::State::soaking: return "soaks";
    case agent::State::degraded: return "stopped";
    case agent::State::pending:
    case agent::State::waiting: return "in-line";
    case agent::State::unknown:
    case agent::State::idle: return {};
  }
  return {};
}

std::string drawn(const SvgChart& chart, const FleetNode& node, std::size_t row, WallTime end) {
  std::string out = "<g>" + chart.name(row, node.left_out.empty() ? node.name : node.name + " (not part)");
  for (const FleetPhase& phase : node.phases) {
    const WallTime until = std::min(phase.until.value_or(end), end);
    if (class_of(phase.state).empty() || until < phase.from) continue;
    // The agent's message is known only for the last phase.
    const std::string why = phase.until || node.message.empty() ? std::string() : ": " + node.message;
    out += chart.bar(
        class_of(phase.state), row, phase.from, until,
        fmt::format("{} was {} for {}{}", node.name, to_string(phase.state), format_duration(until - phase.from), why));
  }
  return out + "</g>\n";
}

}  // namespace

std::string fleet_svg(const FleetRehearsal& rehearsal, const std::string& title) {
  const SvgChart chart(rehearsal.began, rehearsal.ended, rehearsal.nodes.size());
  std::string inside;
  for (std::size_t i = 0; i < rehearsal.nodes.size(); ++i)
    inside += drawn(chart, rehearsal.nodes[i], i, rehearsal.ended);
  return chart.file(title,
                    {{"in-line", "#ddd", "waits for a gate or a slot"},
                     {"drains", "#e9a23b", "drains"},
                     {"reboots", "#3b7dd8", "reboots and is verified"},
                     {"soaks", "#9cc79c", "soaks"},
                     {"stopped", "#c33", "degraded"}},
                    {}, 0, inside);
}

}  // namespace haulout::rehearse
