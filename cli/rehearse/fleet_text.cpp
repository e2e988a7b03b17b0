#include "cli/rehearse/fleet_text.hpp"

#include <fmt/format.h>

#include "agent/process/exit_code.hpp"
#include "base/duration.hpp"
#include "base/text.hpp"
#include "cli/rehearse/rehearsal_text.hpp"

namespace haulout::cli {
namespace {

// A longer list would hide the more important lines; -o json has all pods.
constexpr std::size_t most_not_weighed = 10;

bool is_done(const rehearse::FleetNode& node) {
  return node.left_out.empty() && node.updated && node.state == agent::State::idle;
}

// The message of the agent. Empty if it has none: the state then explains enough.
std::string why(const rehearse::FleetNode& node) {
  return node.message.empty() ? std::string() : ": " + printable(node.message);
}

std::string fate_of(const rehearse::FleetNode& node, const rehearse::FleetRehearsal& rehearsal) {
  if (!node.left_out.empty()) return "left out: " + node.left_out;
  const auto turn = turn_of(node);
  if (is_done(node))
    return fmt::format("updated: got its slot after {}; drained in {}, unavailable for {}",
                       format_whole_seconds(turn.value_or(rehearsal.began) - rehearsal.began),
                       format_whole_seconds(drained_in(node, rehearsal.ended)),
                       format_whole_seconds(out_of_service(node, rehearsal.ended)));
  switch (node.state) {
    case agent::State::degraded: return "would be degraded and wait for a person" + why(node);
    case agent::State::unknown:
    case agent::State::idle:
    case agent::State::pending:
    case agent::State::waiting: return "would still wait" + why(node);
    default:
      return fmt::format("would still be {}, unavailable for {}{}", to_string(node.state),
                         format_whole_seconds(out_of_service(node, rehearsal.ended)), why(node));
  }
}

std::string end_of(const rehearse::FleetRehearsal& rehearsal) {
  switch (rehearsal.end) {
    case rehearse::FleetEnd::over: return {};
    case rehearse::FleetEnd::stuck:
      return fmt::format("stopped: no progress for {}, and no event is pending",
                         format_whole_seconds(rehearsal.given_up_after));
    case rehearse::FleetEnd::horizon: return "stopped: a rehearsal ends after thirty days";
  }
  return {};
}

std::string sum_of(const rehearse::FleetRehearsal& rehearsal) {
  const auto done = static_cast<std::size_t>(std::count_if(rehearsal.nodes.begin(), rehearsal.nodes.end(), is_done));
  return fmt::format("in all: {} of {} updated in {}; at most {} unavailable at a time", done,
                     count_of(rehearsal.nodes.size(), "node"), format_whole_seconds(rehearsal.ended - rehearsal.began),
                     count_of(rehearsal.most_out, "node"));
}

void add_not_weighed(std::vector<std::string>& lines, const std::vector<std::string>& pods) {
  if (pods.empty()) return;
  lines.emplace_back("the scheduler may not find the capacity that is assumed here for:");
  for (std::size_t i = 0; i < std::min(pods.size(), most_not_weighed); ++i) lines.push_back("  pod " + pods[i]);
  if (pods.size() > most_not_weighed) lines.push_back(fmt::format("  … and {} more", pods.size() - most_not_weighed));
}

}  // namespace

int exit_code(const rehearse::FleetRehearsal& rehearsal) {
  const bool all = std::all_of(rehearsal.nodes.begin(), rehearsal.nodes.end(), is_done);
  return all && rehearsal.no_room.empty() ? agent::exit_done : agent::exit_not_done;
}

std::vector<std::string> fleet_lines(const rehearse::FleetRehearsal& rehearsal) {
  std::vector<std::string> lines;
  for (const rehearse::FleetNode& node : rehearsal.nodes) {
    lines.push_back(fmt::format("node/{} {}", node.name, fate_of(node, rehearsal)));
    for (const std::string& pod : node.holds_up) lines.push_back("  pod " + printable(pod));
  }
  lines.push_back(sum_of(rehearsal));
  if (std::string end = end_of(rehearsal); !end.empty()) lines.push_back(std::move(end));
  add_waits(lines, rehearsal.timeline);
  add_no_room(lines, rehearsal.no_room);
  add_not_weighed(lines, rehearsal.not_weighed);
  add_assumed(lines, rehearsal.assumed);
  return lines;
}

}  // namespace haulout::cli
