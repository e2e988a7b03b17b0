#include "cli/people/explanation.hpp"

#include <fmt/format.h>

#include "agent/node/node_status.hpp"
#include "agent/slots/slot_rules.hpp"
#include "base/text.hpp"
#include "cli/people/change.hpp"
#include "cli/people/node_state.hpp"
#include "drain/cordon.hpp"
#include "drain/node_diagnoses.hpp"
#include "drain/reasons.hpp"
#include "k8s/codec.hpp"
#include "k8s/objects.hpp"

namespace haulout::cli {
namespace {

bool in_state(const NodeView& node, agent::State state) {
  return node.state == to_string(state);
}

std::string cordon_text(const k8s::Node& node) {
  const auto mark = drain::mark_of(node);
  switch (drain::cordon_owner(node)) {
    case drain::CordonOwner::nobody: return {};
    case drain::CordonOwner::haulout: {
      const std::string when = k8s::format_time(mark->at);
      if (mark->by == agent::cordoned_by) return "by the agent, " + when;
      return fmt::format("by {} with Haulout's commands, {}; the agent does not uncordon it", printable(mark->by),
                         when);
    }
    case drain::CordonOwner::other: break;
  }
  return node.unschedulable_manager.empty() ? "by another client; Haulout does not uncordon it"
                                            : fmt::format("by another client ({}); Haulout does not uncordon it",
                                                          printable(node.unschedulable_manager));
}

GateView pause_gate(std::string name, const std::string& whom, const std::optional<agent::Pause>& pause, WallTime now) {
  if (!pause || !in_force(*pause, now)) return {std::move(name), GateState::open, whom + " is not paused"};
  return {std::move(name), GateState::closed, fmt::format("{} is {}", whom, describe(*pause))};
}

std::optional<agent::Pause> entry_pause(const FleetFacts& fleet, const std::string& key) {
  const auto value = k8s::value_at(fleet.entries, key);
  return value ? std::optional(agent::parse_pause_json(key, *value)) : std::nullopt;
}

// Only the agent always knows the pool of its node. Here it is known from a label of the Node or of the Lease of its
// slot, if there is one.
GateView pool_gate(const NodeView& node, const FleetFacts& fleet, WallTime now) {
  if (!node.pool.empty())
    return pause_gate("pause-pool", "pool " + node.pool, entry_pause(fleet, agent::pause_key(node.pool)), now);
  std::vector<std::string> paused;
  const std::string prefix = agent::pause_key() + ".";
  for (const auto& [key, value] : fleet.entries)
    if (key.starts_with(prefix) && in_force(agent::parse_pause_json(key, value), now))
      paused.push_back(printable(key.substr(prefix.size())));
  if (paused.empty()) return {"pause-pool", GateState::open, "no pool is paused"};
  return {
      "pause-pool", GateState::unknown,
      fmt::format("paused: {}; only the agent knows whether this node is in one of these pools", joined(paused, ", "))};
}

GateView backoff_gate(const std::optional<agent::Record>& record, WallTime now) {
  if (!record || !record->not_before || *record->not_before <= now)
    return {"backoff", GateState::open, "no recent attempt has failed"};
  return {
      "backoff", GateState::closed,
      fmt::format("{} failed, the last one with: {}; the next attempt is at {}", count_of(record->failures, "attempt"),
                  printable(record->cause_message), k8s::format_time(*record->not_before))};
}

GateView turn_gate(const NodeView& node, const FleetFacts& fleet) {
  if (fleet.turns_problem) return {"slot", GateState::unknown, "slots cannot be read: " + *fleet.turns_problem};
  if (!node.turn.empty()) return {"slot", GateState::open, "this node holds " + node.turn};
  std::vector<std::string> held;
  for (const k8s::Lease& turn : fleet.turns)
    if (node.pool.empty() || pool_of(turn) == node.pool)
      held.push_back(fmt::format("{} by {}", turn.name, printable(holder_of(turn))));
  const std::string message = held.empty() ? "no slot is held" : "held: " + joined(held, ", ");
  if (node.reason == reason::waiting_for_slot) return {"slot", GateState::closed, node.message + " (" + message + ")"};
  // Only the agent has the value of max-unavailable.
  return {"slot", GateState::unknown,
          message +
              "; its agent requests one when it needs it, and nodes that are not Ready or cordoned by a person count "
              "against max-unavailable, too"};
}

// The gates that only the agent can judge, because they are in its configuration: maintenance windows, blocking pods,
// alerts, the reboot limit, hooks.
GateView agent_gate(const NodeView& node) {
  constexpr std::string_view scope = "the agent evaluates windows, blocking pods, alerts and the reboot limit";
  if (!node.agent) return {"agent", GateState::unknown, fmt::format("{}, but no agent has reported", scope)};
  const bool elsewhere = node.reason == reason::paused || node.reason == reason::backing_off;
  if (in_state(node, agent::State::pending) && !node.reason.empty() && !elsewhere)
    return {"agent", GateState::closed, fmt::format("{}: {}", node.reason, node.message)};
  if (in_state(node, agent::State::idle) || in_state(node, agent::State::unknown))
    return {"agent", GateState::unknown, fmt::format("{} when a reboot is needed", scope)};
  return {"agent", GateState::open, fmt::format("{}, and reports no closed gate", scope)};
}

std::vector<GateView> gates_of(const Explanation& about, const FleetFacts& fleet) {
  std::vector<GateView> gates{pause_gate("pause-node", "this node", about.node.pause, about.at)};
  if (fleet.entries_problem) {
    for (const char* name : {"pause-pool", "pause-cluster"})
      gates.push_back({name, GateState::unknown, "pauses cannot be read: " + *fleet.entries_problem});
  } else {
    gates.push_back(pool_gate(about.node, fleet, about.at));
    gates.push_back(pause_gate("pause-cluster", "the cluster", entry_pause(fleet, agent::pause_key()), about.at));
  }
  gates.push_back(backoff_gate(about.record, about.at));
  gates.push_back(turn_gate(about.node, fleet));
  gates.push_back(agent_gate(about.node));
  return gates;
}

std::string said(const NodeView& node) {
  std::string text = "it is " + node.state;
  if (!node.reason.empty()) text += " (" + node.reason + ")";
  if (!node.message.empty()) text += ": " + node.message;
  return text;
}

void why_idle(const NodeView& node, std::vector<std::string>& why) {
  if (node.requested)
    why.emplace_back("a reboot was requested, but the agent has not read the request yet");
  else if (node.reboot_required == "true")
    why.push_back(said(node));
  else if (node.reboot_required == "false")
    why.emplace_back("no reboot is needed");
  else
    why.push_back("it is unknown whether a reboot is needed" + (node.message.empty() ? "" : ": " + node.message));
}

void why_pods(const std::vector<PodView>& pods, bool now_draining, std::vector<std::string>& why) {
  std::vector<std::string> held;
  for (const PodView& pod : pods)
    if (holds_up(pod.fate)) held.push_back(fmt::format("{} ({})", pod.key, pod.reason));
  if (held.empty()) return;
  constexpr std::size_t shown = 5;
  const std::size_t more = held.size() > shown ? held.size() - shown : 0;
  const std::string count = count_of(held.size(), "pod");
  held.resize(held.size() - more);
  const char* verb = !now_draining ? "would block" : held.size() + more == 1 ? "holds" : "hold";
  why.push_back(fmt::format("{} {} a drain: {}{}", count, verb, joined(held, ", "),
                            more == 0 ? "" : fmt::format(" and {} more", more)));
}

std::string why_not_ready(const Explanation& about) {
  std::string why = "the node is not Ready, so this information may be old";
  const bool matters =
      std::any_of(about.pods.begin(), about.pods.end(), [](const PodView& pod) { return pod.fate != PodFate::stay; });
  if (!matters) return why;
  const drain::DiagnosisFact fact = drain::diagnose_not_ready(about.node.name);
  return fmt::format("{}; {} [{}]", why, fact.message, fact.code);
}

std::vector<std::string> why_not_now(const Explanation& about) {
  const NodeView& node = about.node;
  if (!node.agent) return {"no agent has reported on this node, so nothing updates it"};
  std::vector<std::string> why;
  if (node.overdue) why.push_back(message_text(node, about.at));
  if (!node.ready) why.push_back(why_not_ready(about));
  if (in_state(node, agent::State::idle)) {
    why_idle(node, why);
  } else {
    if (!node.overdue) why.push_back(said(node));
  }
  const bool comes = in_state(node, agent::State::pending) || in_state(node, agent::State::waiting) || node.requested;
  if (comes)
    for (const GateView& gate : about.gates)
      if (gate.state == GateState::closed && gate.name != "agent" && gate.name != "slot") why.push_back(gate.message);
  const bool draining = in_state(node, agent::State::draining);
  if (comes || draining) why_pods(about.pods, draining, why);
  return why;
}

void hold_in_dying_namespaces(std::vector<PodView>& pods, const NodeFacts& facts, WallTime now) {
  for (PodView& pod : pods) {
    const auto ns = facts.asked.dying.find(pod.key.substr(0, pod.key.find('/')));
    if (ns == facts.asked.dying.end() || pod.fate == PodFate::stay || pod.fate == PodFate::leaving) continue;
    pod.fate = PodFate::blocked;
    pod.evictable = Evictable::no;
    pod.reason = reason::namespace_terminating;
    pod.message = words_of_dying(ns->second, now);
  }
}

}  // namespace

std::string_view to_string(GateState state) {
  switch (state) {
    case GateState::open: return "open";
    case GateState::closed: return "closed";
    case GateState::unknown: return "unknown";
  }
  return "";
}

std::set<std::string> leaving_pods(const NodeFacts& facts, WallTime now) {
  std::set<std::string> uids;
  for (const PodView& pod : pod_views(facts.pods, std::nullopt, drain::Policy(), facts.daemon_sets, now))
    if (pod.fate != PodFate::stay && pod.fate != PodFate::leaving) uids.insert(pod.uid);
  return uids;
}

Explanation explain(const NodeFacts& facts, WallTime now) {
  const drain::Policy policy;
  Explanation about;
  about.at = now;
  about.node = node_view(facts.node, facts.fleet, now);
  about.record = agent::record_of(facts.node);
  about.cordon = cordon_text(facts.node);
  about.gates = gates_of(about, facts.fleet);
  const auto budgets = facts.budgets_problem ? std::nullopt : std::optional(facts.budgets);
  about.pods = pod_views(facts.pods, budgets, policy, facts.daemon_sets, now, facts.node.ready);
  hold_in_dying_namespaces(about.pods, facts, now);
  about.fit_asked = facts.fit_asked;
  about.fits_problem = facts.fits_problem;
  for (const placement::PodFit& fit : facts.fits)
    for (PodView& pod : about.pods)
      if (pod.uid == fit.uid) pod.fit = fit;
  about.pods_problem = facts.pods_problem;
  about.budgets = budget_views(facts.pods, facts.budgets, policy, facts.daemon_sets, now);
  about.budgets_problem = facts.budgets_problem;
  about.findings = findings_of(facts, now);
  about.not_known = facts.asked.problems;
  const bool at_closed_budget = std::any_of(about.pods.begin(), about.pods.end(),
                                            [](const PodView& pod) { return pod.reason == reason::blocked_by_budget; });
  if (at_closed_budget)
    about.not_known.emplace_back(
        "whether an admission webhook would move a pod whose budget is exhausted: only an eviction request can show "
        "this");
  about.why = why_not_now(about);
  return about;
}

}  // namespace haulout::cli
