#include "cli/people/fleet_summary.hpp"

#include <fmt/format.h>

#include "agent/slots/slot_rules.hpp"
#include "base/text.hpp"
#include "cli/people/views.hpp"
#include "drain/reasons.hpp"

namespace haulout::cli {
namespace {

bool waits(const NodeView& node) {
  return node.state == to_string(agent::State::pending) || node.state == to_string(agent::State::waiting);
}

bool degraded(const NodeView& node) {
  return node.state == to_string(agent::State::degraded);
}

std::string bucket(const NodeView& node) {
  if (!node.agent) return "without an agent";
  if (waits(node) || is_under_way(node.state) || degraded(node)) return node.state;
  if (node.state == to_string(agent::State::idle) && node.reboot_required == "false") return "up to date";
  if (node.state == to_string(agent::State::idle) && node.reboot_required == "true") return "blocked";
  return "unknown";
}

std::string in_brackets(const std::string& reason) {
  return reason.empty() ? "" : " (" + reason + ")";
}

std::string with_message(std::string line, const NodeView& node, WallTime now) {
  const std::string message = message_text(node, now);
  return message.empty() ? line : line + ": " + message;
}

std::string for_so_long(const NodeView& node, WallTime now) {
  return node.since ? " for " + age_text(*node.since, now) : "";
}

std::string degraded_line(const NodeView& node, WallTime now) {
  std::string line = fmt::format("{} is degraded{}{}", node.name, in_brackets(node.reason), for_so_long(node, now));
  if (!node.turn.empty()) line += fmt::format(" and keeps slot {}", node.turn);
  return with_message(std::move(line), node, now);
}

std::string holder_line(const NodeView& node, WallTime now) {
  // The node has a slot, but its state is still `waiting`: the agent has not written the Node since it took the slot.
  // So its message is about the wait, and is not printed.
  if (node.state == to_string(agent::State::waiting))
    return fmt::format("{} has taken slot {} and is confirming it", node.name, node.turn);
  return with_message(fmt::format("{} holds slot {}, {}{}{}", node.name, node.turn, node.state,
                                  in_brackets(node.reason), for_so_long(node, now)),
                      node, now);
}

// Returns one line per reason for which nodes wait; for the roll-out one per pool. If `holders_told` is true, the
// holders of slots have lines of their own, so the nodes that wait for a slot get none.
std::vector<std::string> waiting_lines(const std::vector<NodeView>& nodes, bool holders_told, WallTime now) {
  std::map<std::pair<std::string, std::string>, std::vector<const NodeView*>> by_reason;
  for (const NodeView& node : nodes)
    if (waits(node) && !node.overdue && !(holders_told && node.reason == reason::waiting_for_slot))
      by_reason[{node.reason, waits_for_roll_out(node.reason) ? node.pool : ""}].push_back(&node);
  std::vector<std::string> lines;
  for (const auto& [key, held] : by_reason) {
    const std::string& reason = key.first;
    const NodeView& first = *held.front();
    // The message is that of one node, and may be about this node only.
    const std::string who =
        held.size() == 1 ? first.name + " waits" + in_brackets(reason)
                         : fmt::format("{} nodes wait{}, for example {}", held.size(), in_brackets(reason), first.name);
    lines.push_back(with_message(who, first, now));
  }
  return lines;
}

std::vector<std::string> stray_turns(const Fleet& fleet) {
  std::vector<std::string> lines;
  if (!fleet.whole) return lines;
  for (const k8s::Lease& turn : fleet.facts.turns) {
    // A node that takes its slot from `haulout fleetlock-serve` has one of an outside machine.
    const bool known = std::any_of(fleet.nodes.begin(), fleet.nodes.end(), [&](const NodeView& node) {
      return agent::held_by(turn, {node.name, node.uid}) ||
             (!node.fleetlock_id.empty() && agent::outside_machine(node.fleetlock_id).holder() == turn.holder);
    });
    if (!known && turn.holder.empty())
      lines.push_back(fmt::format("slot {0} has no holder, but counts as taken: delete Lease {0}", turn.name));
    else if (!known && agent::is_outside(turn.holder))
      lines.push_back(
          fmt::format("slot {0} is held by {1}, which is no node of this cluster; if this machine is gone for good, "
                      "delete Lease {0}",
                      turn.name, printable(agent::name_of_holder(turn))));
    else if (!known)
      lines.push_back(
          fmt::format("slot {0} is held by {1}, but no node with this name and UID exists; if Lease {0} still exists "
                      "after a minute, delete it",
                      turn.name, printable(turn.holder)));
  }
  return lines;
}

// Returns one line per node that holds more slots than it needs. A node needs one slot of its pool and, if zones are
// limited, one of its zone.
std::vector<std::string> several_turns(const FleetFacts& facts) {
  std::map<std::pair<std::string, bool>, std::vector<std::string>> held;
  for (const k8s::Lease& turn : facts.turns)
    if (!turn.holder.empty() && !agent::is_outside(turn.holder))
      held[{turn.holder, agent::is_zone_slot(turn.name)}].push_back(turn.name);
  std::vector<std::string> lines;
  for (const auto& [key, turns] : held) {
    if (turns.size() < 2) continue;
    constexpr std::size_t shown = 5;
    const std::vector<std::string> named(turns.begin(),
                                         turns.begin() + static_cast<std::ptrdiff_t>(std::min(shown, turns.size())));
    lines.push_back(fmt::format(
        "{} holds {} slots, but needs one: {}{}; check its agent, and delete the Leases that it does not need",
        printable(key.first.substr(0, key.first.find('/'))), turns.size(), joined(named, ", "),
        turns.size() > shown ? fmt::format(" and {} more", turns.size() - shown) : ""));
  }
  return lines;
}

}  // namespace

Fleet fleet_of(const std::vector<k8s::Node>& nodes, FleetFacts facts, bool whole, WallTime now) {
  Fleet fleet;
  fleet.nodes.reserve(nodes.size());
  for (const k8s::Node& node : nodes) fleet.nodes.push_back(node_view(node, facts, now));
  std::sort(fleet.nodes.begin(), fleet.nodes.end(),
            [](const NodeView& a, const NodeView& b) { return a.name < b.name; });
  fleet.facts = std::move(facts);
  fleet.whole = whole;
  return fleet;
}

std::vector<Count> counts(const std::vector<NodeView>& nodes) {
  std::vector<Count> all{{"up to date"}, {"blocked"}, {"pending"}, {"waiting"}};
  for (const agent::State state : agent::all_states)
    if (duties_of(state).turn == agent::Duty::yes) all.push_back({std::string(to_string(state))});
  for (const char* what : {"degraded", "unknown", "without an agent"}) all.push_back({what});
  for (const NodeView& node : nodes) {
    const std::string what = bucket(node);
    ++std::find_if(all.begin(), all.end(), [&](const Count& count) { return count.what == what; })->nodes;
  }
  std::erase_if(all, [](const Count& count) { return count.nodes == 0; });
  return all;
}

std::string count_line(const std::vector<NodeView>& nodes) {
  std::string line = count_of(nodes.size(), "node");
  std::string_view separator = ": ";
  for (const Count& count : counts(nodes)) {
    line += fmt::format("{}{} {}", separator, count.nodes, count.what);
    separator = ", ";
  }
  return line;
}

std::vector<std::string> pause_lines(const FleetFacts& facts, WallTime now) {
  std::vector<std::string> lines;
  const std::string prefix = agent::pause_key() + ".";
  for (const auto& [key, value] : facts.entries) {
    const bool of_pool = key.starts_with(prefix);
    if (!of_pool && key != agent::pause_key()) continue;
    const agent::Pause pause = agent::parse_pause_json(key, value);
    if (!in_force(pause, now)) continue;
    lines.push_back((of_pool ? "pool " + printable(key.substr(prefix.size())) : "the cluster") + " is " +
                    describe(pause));
  }
  return lines;
}

std::vector<std::string> hold_lines(const Fleet& fleet, WallTime now) {
  std::vector<std::string> lines;
  for (const NodeView& node : fleet.nodes)
    if (degraded(node)) lines.push_back(degraded_line(node, now));
  for (std::string& line : pause_lines(fleet.facts, now)) lines.push_back(std::move(line));
  const bool somebody_waits = std::any_of(fleet.nodes.begin(), fleet.nodes.end(), waits);
  bool holders_told = false;
  for (const NodeView& node : fleet.nodes) {
    if (degraded(node)) {
      holders_told |= !node.turn.empty();
      continue;
    }
    const bool holds = !node.turn.empty() && (somebody_waits || !node.reason.empty());
    if (holds) lines.push_back(holder_line(node, now));
    holders_told |= holds;
    if (!holds && node.overdue) lines.push_back(with_message(node.name + " does not report", node, now));
  }
  for (std::string& line : stray_turns(fleet)) lines.push_back(std::move(line));
  for (std::string& line : several_turns(fleet.facts)) lines.push_back(std::move(line));
  for (std::string& line : waiting_lines(fleet.nodes, holders_told, now)) lines.push_back(std::move(line));
  if (fleet.facts.turns_problem) lines.push_back("holders of slots cannot be read: " + *fleet.facts.turns_problem);
  if (fleet.facts.entries_problem) lines.push_back("pauses cannot be read: " + *fleet.facts.entries_problem);
  return lines;
}

}  // namespace haulout::cli
