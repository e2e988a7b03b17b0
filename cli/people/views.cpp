#include "cli/people/views.hpp"

#include <fmt/format.h>

#include "agent/node/lifecycle_conditions.hpp"
#include "agent/node/node_status.hpp"
#include "agent/slots/slot_rules.hpp"
#include "base/text.hpp"
#include "drain/budget_book.hpp"
#include "drain/cordon.hpp"
#include "drain/diagnoses.hpp"
#include "drain/order.hpp"
#include "drain/reasons.hpp"
#include "k8s/codec.hpp"
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
    case agent::State::rebooting: return record.deadline;
    // The time of hooks does not count. The agent moves its deadline only when they have ended.
    case agent::State::verifying: return view.reason == reason::waiting_for_hook ? std::nullopt : record.deadline;
    // A node that is not well, or whose hooks run, stays as long as it takes.
    case agent::State::soaking:
      return view.reason.empty() || view.reason == reason::soaking ? record.deadline : std::nullopt;
    case agent::State::pending: return view.reason == reason::backing_off ? record.not_before : std::nullopt;
    default: return std::nullopt;
  }
}

// Returns the time by which the agent must have sent another heartbeat: two periods after the last one. Returns nullopt
// if the agent sends no heartbeats now, that is, while no agent says that the maintenance of the Node is in progress.
// Older agents say so by another condition.
std::optional<WallTime> heard_until(const k8s::Node& node) {
  const auto tells = [](const k8s::NodeCondition& condition) {
    return condition.type == agent::maintenance_condition || condition.type == agent::old_maintenance_condition;
  };
  for (const k8s::NodeCondition& condition : node.conditions)
    if (tells(condition) && agent::is_own(condition) && condition.status == "True" && condition.last_heartbeat)
      return *condition.last_heartbeat + 2 * std::chrono::duration_cast<WallTime::duration>(agent::heartbeat);
  return std::nullopt;
}

// Returns the part "why" of an annotation with the value "reboot; why" or "reboot at TIME; why".
std::string reason_of_request(const k8s::Node& node) {
  const std::string value = k8s::value_at(node.annotations, agent::request_annotation).value_or("");
  const std::size_t begin = value.find_first_not_of(' ', std::min(value.find(';'), value.size() - 1) + 1);
  return begin == std::string::npos ? "" : printable(value.substr(begin));
}

void read_record(NodeView& view, const agent::Record& record, WallTime now) {
  view.fleetlock_id = agent::fleetlock_names(record.slot).id;
  if (record.since != WallTime()) view.since = record.since;
  view.from = record.from;
  view.to = record.to;
  for (const std::string& update : record.updates) view.package_updates.push_back(printable(update));
  view.last_update = record.verified_at;
  if (!record.attempts.empty()) view.last_attempt = record.attempts.back();
  if (const auto time = due(record, view); time && now > *time + overdue_after) view.overdue = time;
}

}  // namespace

bool waits_for_roll_out(std::string_view reason) {
  return reason == reason::waiting_for_wave || reason == reason::roll_out_halted || reason == reason::waiting_for_order;
}

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
  if (const auto from = agent::reboot_request(node)) {
    view.requested = true;
    view.request_reason = reason_of_request(node);
    if (*from != WallTime::min()) view.requested_at = from;
  }
  view.request_problem = agent::unreadable_request(node).value_or("");
  view.os_image = node.os_image;
  view.pool = agent::told_pool(node).value_or("");
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
                       age_text(*node.overdue, now), node.message.empty() ? "<none>" : node.message);
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

namespace {

constexpr auto leaves_overdue_after = std::chrono::duration_cast<WallTime::duration>(drain::Pipeline::place_margin);

// Returns the messages of the filters about a pod that is evicted in spite of them.
std::string remarks(const std::vector<drain::Finding>& findings) {
  std::vector<std::string> parts;
  parts.reserve(findings.size());
  for (const drain::Finding& finding : findings) parts.push_back(finding.message);
  return joined(parts, "; ");
}

bool overlapping(const k8s::Pod& pod, const std::vector<std::string>& budgets) {
  return budgets.size() > 1 && !drain::BudgetBook::ignores_budgets(pod);
}

void judge_eviction(PodView& view, const k8s::Pod& pod, const drain::BudgetBook& book, WallTime now) {
  const auto budgets = book.selecting(pod);
  if (overlapping(pod, budgets)) {
    view.fate = PodFate::blocked;
    view.reason = reason::overlapping_budgets;
    const auto fact = drain::overlap_fact(pod, book.explain(budgets));
    view.message = fmt::format("{} [{}]", fact.message, fact.code);
  } else if (book.gate(pod, budgets) == drain::BudgetBook::Gate::closed) {
    view.fate = PodFate::blocked;
    view.reason = reason::blocked_by_budget;
    view.message = book.explain(budgets);
    const auto fact = drain::diagnose_budget({book.budgets().at(budgets.front()), {&pod}, now});
    // A drain reports this diagnosis only after its condition has lasted for some time. Here it is shown immediately.
    if (fact) view.message = fmt::format("blocked by {}: {} [{}]", fact->subject, fact->message, fact->code);
  } else {
    view.fate = PodFate::evict;
    if (!view.findings.empty()) view.reason = view.findings.front().reason;
    view.message = remarks(view.findings);
  }
}

std::vector<PodBudget> budgets_of(const k8s::Pod& pod, const drain::BudgetBook& book) {
  std::vector<PodBudget> result;
  for (const std::string& uid : book.selecting(pod)) {
    const k8s::PodDisruptionBudget& budget = book.budgets().at(uid);
    result.push_back({budget.key(), budget.disruptions_allowed, budget.current_healthy, budget.desired_healthy});
  }
  std::sort(result.begin(), result.end(), [](const PodBudget& a, const PodBudget& b) { return a.key < b.key; });
  return result;
}

// Returns whether the API server would accept the eviction of the pod now, judged by the budgets alone. Haulout's own
// policy has no influence on the result.
Evictable evictable(const k8s::Pod& pod, PodFate fate, const drain::BudgetBook& book) {
  if (fate == PodFate::stay || fate == PodFate::leaving) return Evictable::not_asked;
  const auto budgets = book.selecting(pod);
  if (overlapping(pod, budgets) || book.gate(pod, budgets) == drain::BudgetBook::Gate::closed) return Evictable::no;
  return book.visible() ? Evictable::yes : Evictable::unknown;
}

PodView view_of(const k8s::Pod& pod, const drain::Decision& decision, const drain::BudgetBook& book, WallTime now,
                bool node_ready) {
  PodView view;
  view.key = pod.key();
  view.uid = pod.uid;
  view.budgets = budgets_of(pod, book);
  if (pod.controller) view.controller = pod.controller->kind + "/" + pod.controller->name;
  view.reason = decision.reason;
  view.message = decision.message;
  view.findings = decision.findings;
  switch (decision.verdict) {
    case drain::Verdict::skip: view.fate = PodFate::stay; break;
    case drain::Verdict::refuse: view.fate = PodFate::refused; break;
    case drain::Verdict::park:
      view.fate = PodFate::parked;
      if (decision.reason == reason::do_not_disrupt) {
        const auto fact = drain::protected_fact(pod, decision.message);
        view.message = fmt::format("{} [{}]", fact.message, fact.code);
      }
      break;
    case drain::Verdict::evict:
      if (!pod.terminating()) {
        judge_eviction(view, pod, book, now);
        break;
      }
      view.fate = PodFate::leaving;
      view.reason = reason::terminating;
      view.message = fmt::format("its grace period ends {}", k8s::format_time(*pod.deletion_timestamp));
      if (!pod.finalizers.empty())
        view.message +=
            ", then its finalizers keep it until their controllers remove them: " + joined(pod.finalizers, ", ");
      if (const auto fact =
              drain::diagnose_leaving(pod, now >= *pod.deletion_timestamp + leaves_overdue_after, node_ready))
        view.message = fmt::format("{} [{}]", fact->message, fact->code);
      break;
  }
  view.evictable = evictable(pod, view.fate, book);
  return view;
}

drain::BudgetBook book_of(const std::optional<std::vector<k8s::PodDisruptionBudget>>& budgets) {
  drain::BudgetBook book;
  book.set_visible(budgets.has_value());
  for (const k8s::PodDisruptionBudget& budget : budgets.value_or(std::vector<k8s::PodDisruptionBudget>()))
    book.update(budget.uid, &budget);
  return book;
}

}  // namespace

std::string_view to_string(PodFate fate) {
  switch (fate) {
    case PodFate::blocked: return "blocked";
    case PodFate::parked: return "parked";
    case PodFate::refused: return "refused";
    case PodFate::leaving: return "leaving";
    case PodFate::evict: return "evict";
    case PodFate::stay: return "stay";
  }
  return "";
}

std::string_view to_string(Evictable evictable) {
  switch (evictable) {
    case Evictable::yes: return "yes";
    case Evictable::no: return "no";
    case Evictable::unknown: return "unknown";
    case Evictable::not_asked: return "";
  }
  return "";
}

bool holds_up(PodFate fate) {
  return fate == PodFate::blocked || fate == PodFate::parked || fate == PodFate::refused;
}

std::vector<PodView> pod_views(const std::vector<k8s::Pod>& pods,
                               const std::optional<std::vector<k8s::PodDisruptionBudget>>& budgets,
                               const drain::Policy& policy, const drain::DaemonSetStates& daemon_sets, WallTime now,
                               bool node_ready) {
  const drain::BudgetBook book = book_of(budgets);
  std::vector<std::pair<drain::OrderKey, PodView>> ordered;
  ordered.reserve(pods.size());
  for (const k8s::Pod& pod : pods) {
    const drain::Decision decision = drain::decide(pod, policy, daemon_sets, now);
    ordered.emplace_back(drain::order_key(pod, "", std::nullopt, {}, decision.stage),
                         view_of(pod, decision, book, now, node_ready));
  }
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    const bool a_stays = a.second.fate == PodFate::stay, b_stays = b.second.fate == PodFate::stay;
    if (a_stays != b_stays) return b_stays;
    return a_stays ? a.second.key < b.second.key : a.first < b.first;
  });
  std::vector<PodView> views;
  views.reserve(ordered.size());
  for (auto& [order, view] : ordered) views.push_back(std::move(view));
  return views;
}

std::vector<BudgetView> budget_views(const std::vector<k8s::Pod>& pods,
                                     const std::vector<k8s::PodDisruptionBudget>& budgets, const drain::Policy& policy,
                                     const drain::DaemonSetStates& daemon_sets, WallTime now) {
  std::vector<BudgetView> views;
  for (const k8s::PodDisruptionBudget& budget : budgets) {
    BudgetView view{budget.key(), budget.disruptions_allowed, budget.current_healthy, budget.desired_healthy};
    view.pods = static_cast<std::size_t>(std::count_if(pods.begin(), pods.end(), [&](const k8s::Pod& pod) {
      return budget.selects(pod) && !pod.terminating() &&
             drain::decide(pod, policy, daemon_sets, now).verdict == drain::Verdict::evict;
    }));
    if (view.pods != 0) views.push_back(std::move(view));
  }
  std::sort(views.begin(), views.end(), [](const BudgetView& a, const BudgetView& b) { return a.key < b.key; });
  return views;
}

}  // namespace haulout::cli
