#include "cli/people/explanation.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "agent/node/node_status.hpp"
#include "agent/slots/slot_rules.hpp"
#include "base/duration.hpp"
#include "base/text.hpp"
#include "drain/broken_gangs.hpp"
#include "drain/controller_guard.hpp"
#include "drain/cordon.hpp"
#include "drain/diagnoses.hpp"
#include "drain/options.hpp"
#include "drain/reasons.hpp"
#include "drain/surge_judge.hpp"
#include "drain/volumes.hpp"
#include "k8s/codec.hpp"
#include "k8s/objects.hpp"

namespace haulout::cli {

namespace {

using drain::DiagnosisFact;

struct Judged {
  const k8s::Pod* pod;
  drain::Decision decision;
};

bool leaves(const Judged& judged) {
  return judged.decision.verdict != drain::Verdict::skip;
}

std::vector<Judged> judged(const NodeFacts& facts, WallTime now) {
  std::vector<Judged> all;
  all.reserve(facts.pods.size());
  for (const k8s::Pod& pod : facts.pods)
    all.push_back({&pod, drain::decide(pod, drain::Policy(), facts.daemon_sets, now)});
  return all;
}

bool stuck(const k8s::Namespace& ns, WallTime now) {
  return ns.deletion_timestamp &&
         now - *ns.deletion_timestamp > std::chrono::duration_cast<WallTime::duration>(drain::namespace_hold);
}

void find_namespaces(const Asked& asked, const std::vector<Judged>& pods, WallTime now,
                     std::vector<DiagnosisFact>& found) {
  for (const auto& [name, ns] : asked.dying) {
    std::vector<const k8s::Pod*> held;
    for (const Judged& judged : pods)
      if (leaves(judged) && !judged.pod->terminating() && judged.pod->ns == name) held.push_back(judged.pod);
    if (!held.empty() && stuck(ns, now))
      found.push_back(drain::namespace_fact(name, held, joined(ns.conditions, "; ")));
  }
}

void find_local_volumes(const Asked& asked, const std::vector<Judged>& pods, std::vector<DiagnosisFact>& found) {
  for (const Judged& judged : pods)
    if (const auto local = asked.local_volumes.find(judged.pod->uid); local != asked.local_volumes.end())
      found.push_back(drain::local_volume_fact(*judged.pod, local->second));
}

drain::ClaimUse use_of(const std::vector<Judged>& pods) {
  drain::ClaimUse use;
  for (const Judged& judged : pods) {
    auto& claims = leaves(judged) ? use.leaving : judged.pod->finished() ? use.left : use.staying;
    for (const std::string& claim : judged.pod->claims) claims.insert(judged.pod->ns + "/" + claim);
  }
  return use;
}

// Appends the diagnoses that a drain would report about the volume if it had watched the volume since the
// deletionTimestamp of its VolumeAttachment, and at least for leak_hold: a drain reports a volume that no pod uses as
// leaked only after leak_hold.
void find_volume(const std::string& node, const Asked& asked, const AttachedVolume& volume, const drain::ClaimUse& use,
                 WallTime now, std::vector<DiagnosisFact>& found) {
  Duration watched = drain::VolumeBook::leak_hold;
  if (const auto since = volume.attachment.deletion_timestamp; since && now - *since > watched)
    watched = std::chrono::duration_cast<Duration>(now - *since);
  const TimePoint begin{}, end = begin + watched;
  drain::VolumeBook book(node, drain::Options().volume_limit, [](drain::EventType, const drain::VolumeReport&) {});
  book.attachment_changed(volume.attachment.uid, &volume.attachment, begin, now);
  book.resolved(volume.attachment.persistent_volume, volume.claim);
  book.look(use, begin, now);
  book.node_holds(asked.held, end);
  book.look(use, end, now);
  book.diagnose(end, found);
}

// Appends a diagnosis for each controller whose pods `--surge` cannot replace in advance. Looks only at controllers
// with a single replica, and at pods with the annotation haulout.dev/surge=true.
void find_surges(const std::vector<drain::TrackedPod*>& leaving, const drain::ControllerBook& book,
                 std::vector<DiagnosisFact>& found) {
  for (const drain::TrackedPod* tracked : leaving) {
    const drain::Controller* controller = drain::is_guarded(tracked->pod) ? book.of(tracked->pod) : nullptr;
    if (!controller || tracked->pod.surge_mark) continue;
    const auto wish = drain::surge_wish(tracked->pod.annotations);
    if (wish ? *wish == "false" : controller->replicas != 1) continue;
    const std::string obstacle = drain::surge_obstacle(tracked->pod, *controller);
    if (obstacle.empty()) continue;
    found.push_back({reason::surge_impossible,
                     controller->text(),
                     "with --surge, its pods are evicted without a replacement in advance: " + obstacle,
                     {},
                     {}});
  }
}

void find_replicas(const NodeFacts& facts, const std::vector<Judged>& pods, std::vector<DiagnosisFact>& found) {
  static const std::vector<std::string> some_budget{"unseen"}, no_budget;
  drain::Guards guards;
  guards.single_replica = drain::SingleReplica::warn;
  drain::ControllerBook book;
  for (const auto& [owner, controller] : facts.asked.controllers) book.learned(owner, controller, TimePoint());
  std::vector<drain::TrackedPod> tracked;
  for (const Judged& judged : pods) {
    if (!leaves(judged)) continue;
    drain::TrackedPod& one = tracked.emplace_back();
    one.pod = *judged.pod;
    one.decision = judged.decision;
    const bool guarded = std::any_of(facts.budgets.begin(), facts.budgets.end(),
                                     [&](const auto& budget) { return budget.selects(*judged.pod); });
    one.budgets = guarded ? &some_budget : &no_budget;
  }
  std::vector<drain::TrackedPod*> leaving;
  leaving.reserve(tracked.size());
  for (drain::TrackedPod& one : tracked) leaving.push_back(&one);
  drain::diagnose_replicas(leaving, drain::ControllerGuard(guards, book), !facts.budgets_problem, found);
  find_surges(leaving, book, found);
  std::vector<DiagnosisFact> gangs;
  drain::diagnose_gangs(leaving, {}, drain::Policy(), gangs);
  for (DiagnosisFact& gang : gangs) {
    gang.message = "a drain with --gangs=evict, the default, would stop it: " + gang.message;
    found.push_back(std::move(gang));
  }
}

}  // namespace

std::string words_of_dying(const k8s::Namespace& ns, WallTime now) {
  return fmt::format(
      "its namespace {} is being deleted, and the pod with it; the API server evicts no pod of such a namespace{}",
      ns.name, stuck(ns, now) ? " [NamespaceStuckTerminating]" : "");
}

std::vector<DiagnosisFact> findings_of(const NodeFacts& facts, WallTime now) {
  const std::vector<Judged> pods = judged(facts, now);
  std::vector<DiagnosisFact> found;
  find_namespaces(facts.asked, pods, now, found);
  find_local_volumes(facts.asked, pods, found);
  const drain::ClaimUse use = use_of(pods);
  for (const AttachedVolume& volume : facts.asked.volumes)
    find_volume(facts.node.name, facts.asked, volume, use, now, found);
  find_replicas(facts, pods, found);
  std::map<std::pair<std::string, std::string>, DiagnosisFact> sorted;
  for (DiagnosisFact& fact : found) {
    const std::pair key(fact.code, fact.subject);
    sorted.try_emplace(key, std::move(fact));
  }
  found.clear();
  for (auto& [key, fact] : sorted) found.push_back(std::move(fact));
  return found;
}

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
      return fmt::format(
          "by {} with a haulout command, {}; the agent does not uncordon the node, so run haulout uncordon {} after "
          "the work",
          printable(mark->by), when, node.name);
    }
    case drain::CordonOwner::other: break;
  }
  return node.unschedulable_manager.empty()
             ? fmt::format(
                   "by another client; the agent does not uncordon the node, so run kubectl uncordon {} after the work",
                   node.name)
             : fmt::format(
                   "by another client ({}); the agent does not uncordon the node, so run kubectl uncordon {} after the "
                   "work",
                   printable(node.unschedulable_manager), node.name);
}

GateView pause_gate(std::string name, const std::string& whom, const std::optional<agent::Pause>& pause, WallTime now) {
  if (!pause || !in_force(*pause, now)) return {std::move(name), GateState::open, whom + " is not paused"};
  return {std::move(name), GateState::closed, fmt::format("{} is {}", whom, describe(*pause))};
}

std::optional<agent::Pause> entry_pause(const FleetFacts& fleet, const std::string& key) {
  const auto value = k8s::value_at(fleet.entries, key);
  return value ? std::optional(agent::parse_pause_json(key, *value)) : std::nullopt;
}

// Returns the gate for the pause of the node's pool. The pool is known here only from the record of the agent, or from
// the label of the Node or of the Lease of its slot; otherwise only the agent knows it.
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
      fmt::format("paused pools: {}; only the agent knows whether this node is in one of them", joined(paused, ", "))};
}

GateView backoff_gate(const std::optional<agent::Record>& record, WallTime now) {
  if (!record || !record->not_before || *record->not_before <= now)
    return {"backoff", GateState::open, "no failed or cancelled attempt delays the next one"};
  return {"backoff", GateState::closed,
          fmt::format("{} did not succeed{}: {}; the next attempt begins at {} at the earliest",
                      count_of(record->failures, "attempt"), record->failures == 1 ? "" : ", the last one",
                      printable(record->cause_message), k8s::format_time(*record->not_before))};
}

GateView turn_gate(const NodeView& node, const FleetFacts& fleet) {
  if (fleet.turns_problem) return {"slot", GateState::unknown, "slots cannot be read: " + *fleet.turns_problem};
  if (!node.turn.empty()) return {"slot", GateState::open, "this node holds slot " + node.turn};
  std::vector<std::string> held;
  for (const k8s::Lease& turn : fleet.turns)
    if (node.pool.empty() || pool_of(turn) == node.pool)
      held.push_back(fmt::format("{} by {}", turn.name, printable(holder_of(turn))));
  const std::string of_whom = node.pool.empty() ? "" : " of pool " + printable(node.pool);
  const std::string message =
      held.empty() ? fmt::format("no Lease{} is held as a slot", of_whom) : "held: " + joined(held, ", ");
  if (node.reason == reason::waiting_for_slot || waits_for_roll_out(node.reason))
    return {"slot", GateState::closed, node.message + " (" + message + ")"};
  // Whether a slot is free is not known here, because only the agent knows max-unavailable.
  return {
      "slot", GateState::unknown,
      message +
          "; the agent requests a slot when the node needs one. Not shown here: unavailable nodes without a slot, and "
          "the slots of a FleetLock server"};
}

// Returns one gate for all conditions that only the agent can evaluate, because they are in its configuration:
// maintenance windows, blocking pods, alerts, the reboot limit, hooks.
GateView agent_gate(const NodeView& node) {
  constexpr std::string_view scope =
      "the agent evaluates windows, blocking pods, alerts, fleet health and the reboot limit";
  if (!node.agent) return {"agent", GateState::unknown, fmt::format("{}, but no agent has reported", scope)};
  const bool elsewhere = node.reason == reason::paused || node.reason == reason::backing_off;
  if (in_state(node, agent::State::pending) && !node.reason.empty() && !elsewhere)
    return {"agent", GateState::closed, fmt::format("{}: {}", node.reason, node.message)};
  // While such a gate is closed, the agent does not evaluate all others.
  if (in_state(node, agent::State::pending) && elsewhere)
    return {"agent", GateState::unknown,
            fmt::format("{} when the gate that it reports ({}) is open", scope, node.reason)};
  if (in_state(node, agent::State::idle) || in_state(node, agent::State::unknown))
    return {"agent", GateState::unknown, fmt::format("{} when the node needs an update", scope)};
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
  std::string text = "the node's state is " + node.state;
  if (!node.reason.empty()) text += " (" + node.reason + ")";
  if (!node.message.empty()) text += ": " + node.message;
  return text;
}

// Returns true if a person wants the node to be rebooted, but not yet.
bool requested_for_later(const Explanation& about) {
  return about.node.requested_at && *about.node.requested_at > about.at;
}

void why_idle(const Explanation& about, std::vector<std::string>& why) {
  const NodeView& node = about.node;
  if (requested_for_later(about)) why.push_back("a reboot is requested for " + k8s::format_time(*node.requested_at));
  if (node.requested && !requested_for_later(about))
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
  const char* verb = !now_draining ? "would block" : held.size() + more == 1 ? "blocks" : "block";
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
  if (!node.agent) return {"no agent has reported on this node, so no agent updates it"};
  std::vector<std::string> why;
  if (node.overdue) why.push_back(message_text(node, about.at));
  if (!node.ready) why.push_back(why_not_ready(about));
  if (!node.request_problem.empty()) why.push_back(node.request_problem);
  if (in_state(node, agent::State::idle)) {
    why_idle(about, why);
  } else {
    if (!node.overdue) why.push_back(said(node));
  }
  const bool comes = in_state(node, agent::State::pending) || in_state(node, agent::State::waiting) ||
                     (node.requested && !requested_for_later(about));
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
        "whether an admission webhook acts on the eviction of a pod whose budget is exhausted (KubeVirt then migrates "
        "the VM): only an eviction request shows that");
  about.why = why_not_now(about);
  return about;
}

namespace {

using Cells = std::vector<std::string>;
using Lines = std::vector<std::string>;

std::string or_none(const std::string& text) {
  return text.empty() ? "<none>" : printable(text);
}

// Appends the rows as lines, indented by two spaces. Each column is as wide as its widest cell.
void add_table(Lines& lines, const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths;
  for (const Cells& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  for (const Cells& row : rows) {
    std::string line = "  ";
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i + 1 == row.size() ? row[i] : padded(row[i], widths[i]) + "   ";
    lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

void add_fact(Lines& lines, std::string_view name, const std::string& value) {
  if (!value.empty()) lines.push_back(padded(fmt::format("{}:", name), 13) + printable(value));
}

std::string state_line(const Explanation& about) {
  std::string line = state_text(about.node);
  if (!about.node.reason.empty()) line += " (" + about.node.reason + ")";
  if (about.node.since) line += ", for " + age_text(*about.node.since, about.at);
  return line;
}

std::string reboot_line(const Explanation& about) {
  std::string line = about.node.reboot_required.empty() ? "<none>" : about.node.reboot_required;
  if (about.node.requested) {
    line += ", requested";
    if (about.node.requested_at) line += " for " + k8s::format_time(*about.node.requested_at);
    if (!about.node.request_reason.empty()) line += ": " + about.node.request_reason;
  }
  if (!about.node.request_problem.empty()) line += ", with a request that cannot be read";
  // While the label reboot-required is "false", the reasons in the record are those of package updates, not of a
  // reboot.
  const bool needed = about.node.reboot_required != "false";
  if (needed && about.record && !about.record->reasons.empty())
    line += ", because of " + joined(about.record->reasons, ", ");
  return line;
}

std::string update_line(const NodeView& node) {
  if (node.to.empty()) return node.from.empty() ? "" : "from " + node.from;
  return node.from.empty() ? "to " + node.to : node.from + " to " + node.to;
}

std::string last_update(const Explanation& about) {
  if (!about.node.last_update) return {};
  std::string line = age_text(*about.node.last_update, about.at) + " ago";
  if (about.record && !about.record->durations.empty())
    line += ", took " + format_duration(std::chrono::seconds(about.record->durations.back()));
  return line;
}

void add_facts(Lines& lines, const Explanation& about) {
  const NodeView& node = about.node;
  add_fact(lines, "Name", node.name);
  add_fact(lines, "State", state_line(about));
  add_fact(lines, "Reboot", reboot_line(about));
  add_fact(lines, "Update", update_line(node));
  add_fact(lines, "Updates", joined(node.package_updates, ", "));
  add_fact(lines, "Last update", last_update(about));
  add_fact(lines, "OS image", node.os_image);
  add_fact(lines, "Pool", node.pool);
  if (about.record) add_fact(lines, "Authority", about.record->authority);
  add_fact(lines, "Cordon", about.cordon.empty() ? "<none>" : about.cordon);
}

void add_attempts(Lines& lines, const Explanation& about) {
  if (!about.record || about.record->attempts.empty()) return;
  std::vector<Cells> rows{{"ENDED", "REASON", "WHY"}};
  const auto& attempts = about.record->attempts;
  for (auto each = attempts.rbegin(); each != attempts.rend(); ++each)
    rows.push_back({age_text(each->at, about.at) + " ago", or_none(each->reason), printable(each->why)});
  lines.emplace_back();
  lines.emplace_back("Last attempts:");
  add_table(lines, rows);
}

std::string pods_head(const std::vector<PodView>& pods) {
  std::map<PodFate, std::size_t> counts;
  for (const PodView& pod : pods) ++counts[pod.fate];
  std::vector<std::string> parts;
  parts.reserve(counts.size());
  for (const auto& [fate, count] : counts) parts.push_back(fmt::format("{} {}", count, to_string(fate)));
  return "Pods (if the agent drained the node now, with its default options and in this order" +
         (parts.empty() ? "): none" : "; " + joined(parts, ", ") + "):");
}

std::string budget_cell(const Explanation& about, const PodView& pod) {
  if (about.budgets_problem) return "<unknown>";
  std::vector<std::string> parts;
  parts.reserve(pod.budgets.size());
  for (const PodBudget& budget : pod.budgets)
    parts.push_back(
        fmt::format("{} (allows {}, {}/{} healthy)", budget.key, budget.allowed, budget.healthy, budget.desired));
  return or_none(joined(parts, ", "));
}

// Appends the results of the check whether pods fit on other nodes. Only a pod that a drain would evict and that its
// controller would create again has such a result.
void add_fits(Lines& lines, const Explanation& about) {
  if (!about.fit_asked || about.pods_problem) return;
  lines.emplace_back();
  if (about.fits_problem) {
    lines.push_back("Fit elsewhere: unknown for all pods of the node: " + *about.fits_problem);
    return;
  }
  std::vector<Cells> rows{{"POD", "FITS", "NODE", "PLUGINS", "MESSAGE"}};
  for (const PodView& pod : about.pods)
    if (pod.fit)
      rows.push_back({pod.key, std::string(to_string(pod.fit->fit)), or_none(pod.fit->node),
                      or_none(joined(pod.fit->plugins, ",")), printable(pod.fit->message)});
  lines.emplace_back(
      rows.size() == 1
          ? "Fit elsewhere: nothing to check, because a drain would evict no pod that a controller creates again"
          : "Fit elsewhere (largest pods first; a replacement is assumed to request what its pod requests):");
  if (rows.size() > 1) add_table(lines, rows);
}

void add_pods(Lines& lines, const Explanation& about) {
  lines.emplace_back();
  if (about.pods_problem) {
    lines.push_back("Pods: cannot be read: " + *about.pods_problem);
    return;
  }
  lines.push_back(pods_head(about.pods));
  std::vector<Cells> rows{{"POD", "VERDICT", "EVICTABLE", "BUDGETS", "REASON", "MESSAGE"}};
  for (const PodView& pod : about.pods)
    rows.push_back({pod.key, std::string(to_string(pod.fate)), or_none(std::string(to_string(pod.evictable))),
                    budget_cell(about, pod), or_none(pod.reason), printable(pod.message)});
  if (rows.size() > 1) add_table(lines, rows);
}

void add_budgets(Lines& lines, const Explanation& about) {
  if (about.budgets_problem) {
    lines.emplace_back();
    lines.push_back("Budgets: cannot be read, so more pods may be blocked than shown: " + *about.budgets_problem);
  }
  if (about.budgets.empty()) return;
  lines.emplace_back();
  lines.emplace_back("Budgets:");
  std::vector<Cells> rows{{"PODDISRUPTIONBUDGET", "ALLOWED", "HEALTHY", "NEEDED", "PODS-HERE"}};
  for (const BudgetView& budget : about.budgets)
    rows.push_back({budget.key, std::to_string(budget.allowed), std::to_string(budget.healthy),
                    std::to_string(budget.needed), std::to_string(budget.pods)});
  add_table(lines, rows);
}

void add_findings(Lines& lines, const Explanation& about) {
  if (!about.findings.empty()) {
    lines.emplace_back();
    lines.emplace_back("Diagnoses:");
    std::vector<Cells> rows{{"REASON", "ABOUT", "MESSAGE"}};
    for (const drain::DiagnosisFact& finding : about.findings)
      rows.push_back({finding.code, printable(finding.subject), printable(finding.message)});
    add_table(lines, rows);
  }
  if (about.not_known.empty()) return;
  lines.emplace_back();
  lines.emplace_back("Unknown:");
  for (const std::string& problem : about.not_known) lines.push_back("  - " + problem);
}

}  // namespace

std::vector<std::string> explanation_text(const Explanation& about) {
  Lines lines;
  add_facts(lines, about);
  lines.emplace_back();
  lines.emplace_back("Why not now:");
  for (const std::string& reason : about.why) lines.push_back("  - " + printable(reason));
  lines.emplace_back();
  lines.emplace_back("Gates:");
  std::vector<Cells> rows{{"GATE", "STATE", "MESSAGE"}};
  for (const GateView& gate : about.gates)
    rows.push_back({gate.name, std::string(to_string(gate.state)), printable(gate.message)});
  add_table(lines, rows);
  add_attempts(lines, about);
  add_pods(lines, about);
  add_fits(lines, about);
  add_budgets(lines, about);
  add_findings(lines, about);
  return lines;
}

}  // namespace haulout::cli
