#include "cli/people/node_view.hpp"

#include <fmt/format.h>

#include "agent/node/node_status.hpp"
#include "agent/slots/slot_rules.hpp"
#include "base/text.hpp"
#include "cli/people/change.hpp"
#include "drain/cordon.hpp"
#include "drain/reasons.hpp"
#include "k8s/objects.hpp"

namespace haulout::cli {

std::string state_shown(const k8s::Node& node) {
  return k8s::value_at(node.labels, agent::state_label).value_or("");
}

bool is_under_way(std::string_view state) {
  const auto known = agent::state_of(state);
  return known && duties_of(*known).turn == agent::Duty::yes;
}

namespace {

// How long an agent may be late before it counts as overdue. Covers differences between clocks and slow API servers.
constexpr auto overdue_after = std::chrono::minutes(5);

// Tolerated difference of clocks. For a time that is further in the future, age_text() returns "<invalid>".
constexpr auto clocks_differ = std::chrono::minutes(1);

const k8s::Lease* turn_of(const k8s::Node& node, const FleetFacts& facts) {
  const agent::OwnNode own{node.name, node.uid};
  const auto found =
      std::find_if(facts.turns.begin(), facts.turns.end(), [&](const k8s::Lease& turn) { return held_by(turn, own); });
  return found == facts.turns.end() ? nullptr : &*found;
}

// Returns the time by which the agent must have left this state; nullopt if the agent has set no such time.
std::optional<WallTime> due(const agent::Record& record, const NodeView& view) {
  switch (record.state) {
    case agent::State::rebooting:
    case agent::State::verifying:
    case agent::State::soaking: return record.deadline;
    case agent::State::pending: return view.reason == reason::backing_off ? record.not_before : std::nullopt;
    default: return std::nullopt;
  }
}

// Returns the time by which the agent of a node in maintenance must have sent another heartbeat: two periods after the
// last one. Returns nullopt if the node is not in maintenance.
std::optional<WallTime> heard_until(const k8s::Node& node) {
  for (const k8s::NodeCondition& condition : node.conditions)
    if (condition.type == agent::maintenance_condition && condition.status == "True" && condition.last_heartbeat)
      return *condition.last_heartbeat + 2 * std::chrono::duration_cast<WallTime::duration>(agent::heartbeat);
  return std::nullopt;
}

// Returns the part "why" of an annotation with the value "reboot; why".
std::string reason_of_request(const k8s::Node& node) {
  const std::string value = k8s::value_at(node.annotations, agent::request_annotation).value_or("");
  const std::size_t begin = value.find_first_not_of(' ', std::min(value.find(';'), value.size() - 1) + 1);
  return begin == std::string::npos ? "" : printable(value.substr(begin));
}

void read_record(NodeView& view, const agent::Record& record, WallTime now) {
  if (record.since != WallTime()) view.since = record.since;
  view.from = record.from;
  view.to = record.to;
  view.last_update = record.verified_at;
  if (!record.attempts.empty()) view.last_attempt = record.attempts.back();
  if (const auto time = due(record, view); time && now > *time + overdue_after) view.overdue = time;
}

}  // namespace

NodeView node_view(const k8s::Node& node, const FleetFacts& facts, WallTime now) {
  NodeView view;
  view.name = node.name;
  view.uid = node.uid;
  view.state = state_shown(node);
  view.reason = k8s::value_at(node.labels, agent::reason_label).value_or("");
  view.reboot_required = k8s::value_at(node.labels, agent::reboot_required_label).value_or("");
  view.message = printable(k8s::value_at(node.annotations, agent::message_annotation).value_or(""));
  view.ready = node.ready;
  view.unschedulable = node.unschedulable;
  view.foreign_cordon = drain::cordon_owner(node) == drain::CordonOwner::other;
  view.requested = agent::reboot_requested(node);
  if (view.requested) view.request_reason = reason_of_request(node);
  view.os_image = node.os_image;
  view.pool = k8s::value_at(node.labels, agent::pool_label).value_or("");
  if (const k8s::Lease* turn = turn_of(node, facts)) {
    view.turn = turn->name;
    if (view.pool.empty()) view.pool = pool_of(*turn);
  }
  if (const auto value = k8s::value_at(node.annotations, agent::pause_annotation)) {
    agent::Pause pause = agent::parse_pause_annotation(*value);
    if (in_force(pause, now)) view.pause = std::move(pause);
  }
  if (const auto record = agent::record_of(node)) {
    if (view.state.empty()) view.state = to_string(record->state);
    read_record(view, *record, now);
    const auto until = heard_until(node);
    if (!view.overdue && until && now > *until + overdue_after) view.overdue = until;
  }
  view.agent = !view.state.empty();
  return view;
}

std::string pool_of(const k8s::Lease& turn) {
  return k8s::value_at(turn.labels, agent::pool_label).value_or("");
}

std::string holder_of(const k8s::Lease& turn) {
  return turn.holder.substr(0, turn.holder.find('/'));
}

std::string state_text(const NodeView& node) {
  std::string text = node.agent ? node.state : "<none>";
  if (!node.ready) text += ",NotReady";
  const auto state = agent::state_of(node.state);
  // Do not print SchedulingDisabled if the state implies the cordon.
  const bool told = state && (duties_of(*state).cordon == agent::Duty::yes ||
                              (*state == agent::State::uncordoning && !node.foreign_cordon));
  if (node.unschedulable && !told) text += ",SchedulingDisabled";
  return text;
}

std::string message_text(const NodeView& node, WallTime now) {
  if (!node.agent) return node.pause ? describe(*node.pause) : "no agent has reported on this node";
  if (node.overdue)
    return fmt::format("the agent is overdue by {}; check that it runs. Its last message: {}",
                       age_text(*node.overdue, now), node.message.empty() ? "nothing" : node.message);
  if (!node.message.empty()) return node.message;
  return node.pause ? describe(*node.pause) : "";
}

// Uses the format of duration.HumanDuration in k8s.io/apimachinery.
std::string age_text(WallTime since, WallTime now) {
  if (since > now + clocks_differ) return "<invalid>";
  const std::int64_t seconds =
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(now - since).count());
  const std::int64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
  const auto both = [](std::int64_t a, char unit, std::int64_t b, char small) {
    return b == 0 ? fmt::format("{}{}", a, unit) : fmt::format("{}{}{}{}", a, unit, b, small);
  };
  if (seconds < 120) return fmt::format("{}s", seconds);
  if (minutes < 10) return both(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return fmt::format("{}m", minutes);
  if (hours < 8) return both(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return fmt::format("{}h", hours);
  if (days < 8) return both(days, 'd', hours % 24, 'h');
  return fmt::format("{}d", days);
}

}  // namespace haulout::cli
