#include "tests/fleet/fleet_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/node/lifecycle_conditions.hpp"
#include "drain/cordon.hpp"
#include "drain/pod_filter.hpp"
#include "k8s/codec.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using sim::Json;

// In these states a node must have a slot.
const std::set<std::string> out_states{"draining",  "updating",    "ready",  "rebooting",
                                       "verifying", "uncordoning", "soaking"};

// If a node becomes unavailable, the other agents know it after this time at the latest.
constexpr Duration others_notice = 2min;
// How many pods of one app that came back to the cordoned node a drain may evict. A controller creates the next pod
// while the last one is terminating. So a drain may evict one pod for each of its places before it sees two of them
// come back.
constexpr std::size_t most_returns = 10;

// How long a proof that a node may be rebooted takes at most. A proof is a list of the Leases, a get of the Node and a
// list of its pods, each with its own deadline.
constexpr Duration proof_takes = 3min;
constexpr Duration controllers_notice = 5s;
// The time limit of an agent's request for a slot, and a little more.
constexpr Duration look_takes = 150s;
// Shorter than the time after which agents pass over a node that leaves a free slot to others.
constexpr Duration patience_at_least = 9min;
// The time limit of one request of an agent, and a little more.
constexpr Duration read_takes = 35s;
// How much older than the truth an agent's view of its Node may be, while its watch is silent.
constexpr Duration view_is_old = 15min;
// `reboot_limit` of the agents (10 min) minus a margin: the limit begins when the agent writes the request to the
// record, which is before it sends the request.
constexpr Duration reboot_time = 9min;

std::string node_of(const std::string& holder) {
  return holder.substr(0, holder.find('/'));
}

std::string uid_of_holder(const std::string& holder) {
  const auto slash = holder.find('/');
  return slash == std::string::npos ? std::string() : holder.substr(slash + 1);
}

std::string app_of(const Json& pod) {
  return sim::ns_of(pod) + "/" + sim::text(pod, "/metadata/labels/app");
}

// Returns false if the JSON was cut off: then the first brace has no closing brace.
bool is_closed(std::string_view json) {
  std::size_t open = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == '{') {
      ++open;
    } else if (!quoted && c == '}' && --open == 0) {
      return true;
    }
  }
  return false;
}

bool is_whole(const http::Response* answer) {
  return answer && answer->status >= 200 && answer->status < 300 && answer->body.starts_with('{') &&
         is_closed(answer->body);
}

bool is_own_lease(const sim::TestCluster& cluster, const sim::Call& call, const std::string& node) {
  const Json lease = cluster.get("leases", call.ns, call.name);
  return lease.is_null() || node_of(sim::text(lease, "/spec/holderIdentity")) == node;
}

bool is_allowed(const sim::TestCluster& cluster, const sim::Call& call, const std::string& node, bool surges,
                bool asks) {
  if (call.verb == "get" || call.verb == "list" || call.verb == "watch") return true;
  if (call.path.ends_with("/selfsubjectaccessreviews")) return true;
  if (!call.info) return false;
  const auto& resource = call.info->resource;
  if (resource == "nodes") return call.verb == "patch" && call.name == node;
  if (resource == "pods" && call.verb == "patch" && call.subresource.empty() && surges) {
    const sim::Object pod = cluster.store().get({"pods", call.ns, call.name});
    return !pod || sim::text(*pod, "/spec/nodeName") == node;
  }
  if (resource == "pods") return call.verb == "create" && call.subresource == "eviction";
  if (resource == "evictionrequests") return asks && (call.verb == "create" || call.verb == "patch");
  if (resource == "leases")
    return call.verb == "create" || (call.verb == "delete" && is_own_lease(cluster, call, node));
  return resource == "events" && (call.verb == "create" || call.verb == "patch");
}

// The version to which the machine's next update leads, as its agent is told; empty if there is none.
std::string version_wanted(const Machine& machine) {
  const MachinePlan& plan = machine.plan();
  const bool image_waits = plan.updates.on && !plan.updates.before_drain && machine.updates().wanted();
  if (image_waits && !plan.updates.image.empty()) return plan.updates.image;
  return plan.target != machine.version() || plan.still_wanted ? plan.target : std::string();
}

// Where the wave ends in which `done` nodes have come back, or have failed, in a pool of so many nodes. `ramp` has
// numbers of nodes and percentages: "1,2,20%". SIZE_MAX after the last wave.
std::size_t end_of_wave(const std::string& ramp, std::size_t done, std::size_t nodes) {
  std::size_t end = 0;
  for (std::size_t at = 0; at < ramp.size() && end <= done;) {
    std::size_t length = 0;
    const std::size_t number = std::stoul(ramp.substr(at), &length);
    at += length;
    const bool share = at < ramp.size() && ramp[at] == '%';
    end += share ? std::max<std::size_t>(1, number * nodes / 100) : number;
    at += (share ? 1 : 0) + 1;
  }
  return end > done ? end : SIZE_MAX;
}

}  // namespace

FleetChecks::FleetChecks(sim::TestCluster& cluster, Clock& clock, const drain::Policy& policy, Limit limit)
    : cluster_(cluster), clock_(clock), policy_(policy), limit_(std::move(limit)) {
  cluster_.on_change([this](const sim::Change& change) { see(change); });
  cluster_.server().on_answer([this](const sim::AuditEntry& entry) { see_answer(entry); });
}

void FleetChecks::by_a_person(const std::function<void()>& action) {
  person_acts_ = true;
  action();
  person_acts_ = false;
}

void FleetChecks::violated(std::string what) {
  violations.push_back(
      fmt::format("{:.1f} s: {}", std::chrono::duration<double>(clock_.now() - TimePoint(1h)).count(), what));
}

void FleetChecks::see(const sim::Change& change) {
  if (change.key.resource == "nodes") see_node(change);
  if (change.key.resource == "leases") see_lease(change);
  if (change.key.resource == "pods") see_pod(change);
  if (change.key.resource == "poddisruptionbudgets" &&
      (!change.before || sim::at(*change.before, "/spec") != sim::at(*change.object, "/spec")))
    disturbed_[change.key.ns + "/" + sim::text(*change.object, "/spec/selector/matchLabels/app")] = clock_.now();
  check_conditions();
}

void FleetChecks::see_node(const sim::Change& change) {
  NodeTruth& node = nodes_[change.key.name];
  if (change.type == sim::ChangeType::deleted) {
    NodeTruth next;
    next.machine = node.machine;
    // A Node that is deleted while its agent drains it counts as draining up to now, because the agent may notice the
    // deletion late.
    next.drained_last = node.state == "draining" ? clock_.now() : node.drained_last;
    node = std::move(next);
    node.cordon_lost = node.turn_lost = clock_.now();
    failed_.erase(change.key.name);
    for (auto* all : {&came_back_, &failed_with_})
      for (auto& [version, nodes] : *all)
        if (const auto found = nodes.find(change.key.name); found != nodes.end()) found->second = false;
    look_whose_wave_may_be();
    return;
  }
  const Json& object = *change.object;
  node.uid = sim::uid_of(object);
  node.recorded = !sim::annotation(object, "haulout.dev/record").empty();
  if (node.recorded != node.recorded_since.has_value())
    node.recorded_since = node.recorded ? std::optional(clock_.now()) : std::nullopt;
  if (remembers_versions) see_versions(change.key.name, sim::annotation(object, "haulout.dev/record"));
  const bool unschedulable = sim::flag(object, "/spec/unschedulable");
  if (unschedulable != node.unschedulable) {
    if (!unschedulable && node.by_a_person && !person_acts_)
      violated("P5: an agent took back the cordon of a person on " + change.key.name);
    node.by_a_person = unschedulable && person_acts_;
    node.workplace = false;
    node.unschedulable = unschedulable;
    node.came.clear();
    node.sent_away.clear();
    node.cordon_lost = unschedulable ? std::nullopt : std::optional(clock_.now());
  }
  const Json& ready = sim::condition(object, "Ready");
  const bool out = unschedulable || (!ready.is_null() && sim::text(ready, "/status") != "True");
  if (out != node.out_since.has_value()) node.out_since = out ? std::optional(clock_.now()) : std::nullopt;
  look_whose_turn_may_be();
  see_taints(node, object);
  if (change.before) check_waiting_taint(change.key.name, *change.before, object);
  see_autoscalers(change.key.name, node, object);
  const Json& labels = sim::at(object, "/metadata/labels");
  const std::string state = labels.is_object() ? labels.value("haulout.dev/state", "") : "";
  if (state != node.state) see_state(change.key.name, node, state);
  see_line(node, object);
  look_whose_wave_may_be();
  see_conditions(change.key.name, node, object);
}

// P5: a condition that another program has written stays as it is, except that an agent may make a False one True.
void FleetChecks::see_conditions(const std::string& name, NodeTruth& node, const Json& object) {
  for (const std::string_view type : k8s::lifecycle_conditions) {
    ConditionTruth& truth = node.conditions[type];
    ConditionTruth now;
    now.untrue_since = truth.untrue_since;
    if (const Json& shown = sim::condition(object, type); !shown.is_null()) {
      now.text = shown.dump();
      now.status = sim::text(shown, "/status");
      now.ours = sim::text(shown, "/message").starts_with("haulout: ");
    }
    const bool theirs = !truth.text.empty() && !truth.ours;
    const bool taken_over = truth.status == "False" && now.ours && now.status == "True";
    if (!person_acts_ && theirs && now.text != truth.text && !taken_over)
      violated(fmt::format("P5: an agent changed the condition {} of {}, which it had not written", type, name));
    if (!person_acts_ && now.ours && now.status != "True")
      violated(fmt::format("P5: an agent left its condition {} on {}", type, name));
    truth = std::move(now);
  }
}

std::string FleetChecks::untrue(const std::string& name, const NodeTruth& node, std::string_view type) const {
  const bool drained = type == agent::drained_condition;
  if (drained && node.state != "ready" && node.state != "rebooting") return "the node is " + node.state;
  if (drained && !node.unschedulable) return "the node is schedulable";
  if (drained)
    for (const Json& pod : cluster_.all("pods"))
      if (sim::text(pod, "/spec/nodeName") == name && must_leave(pod)) return sim::name_of(pod) + " is on it";
  if (type == agent::drain_condition && node.state != "draining") return "the node is " + node.state;
  const bool waits = node.state == "pending" || node.state == "waiting" || node.state == "draining";
  if (type == agent::planned_condition && !waits) return "the node is " + node.state;
  const bool in_service = !node.unschedulable && node.state != "updating" && node.state != "rebooting";
  if (type == agent::maintenance_condition && in_service) return "the node is in service";
  return {};
}

// P3, P8: what an agent tells by conditions is true. While no agent runs, nobody can take anything back.
void FleetChecks::check_conditions() {
  for (auto& [name, node] : nodes_)
    for (auto& [type, truth] : node.conditions) {
      const bool runs = node.machine && node.machine->powered() && node.machine->lives();
      const std::string why = runs && truth.ours ? untrue(name, node, type) : std::string();
      if (why.empty())
        truth.untrue_since.reset();
      else if (!truth.untrue_since)
        truth.untrue_since = clock_.now();
      else if (clock_.now() - *truth.untrue_since > conditions_late) {
        violated(fmt::format("P3: the condition {} of {} is True, but {}", type, name, why));
        truth.untrue_since = TimePoint::max();  // one violation is enough
      }
    }
}

// P5: an agent sets only annotations for autoscalers that are not there, and none that a person has removed during its
// hold; it removes only those that it has set, and leaves none of them behind.
void FleetChecks::see_autoscalers(const std::string& name, NodeTruth& node, const Json& object) {
  const std::string mark = sim::annotation(object, "haulout.dev/held-autoscalers");
  for (const std::string_view key : agent::autoscaler_annotations) {
    AutoscalerTruth& truth = node.autoscalers[std::string(key)];
    AutoscalerTruth now = truth;
    now.value = sim::annotation(object, std::string(key).c_str());
    now.ours = mark.find(key) != mark.npos && now.value == "true";
    if (mark.empty() || !now.value.empty()) now.refused = false;
    if (person_acts_ && !mark.empty() && now.value.empty() && !truth.value.empty()) now.refused = true;
    const bool theirs = !truth.value.empty() && !truth.ours;
    if (!person_acts_ && theirs && (now.value != truth.value || now.ours))
      violated(fmt::format("P5: an agent took over the annotation {} of {}, which it had not set", key, name));
    if (!person_acts_ && truth.refused && !now.value.empty())
      violated(fmt::format("P5: an agent set the annotation {} of {} again, which a person had removed", key, name));
    if (!person_acts_ && truth.ours && !now.ours && now.value == truth.value)
      violated(fmt::format("P5: an agent left its annotation {} on {}", key, name));
    truth = std::move(now);
  }
}

// P5: an agent adds and removes only the taint that its mark names, both in the same write. Only Kubernetes and the
// machine change the taints of cordons and of readiness.
void FleetChecks::check_waiting_taint(const std::string& name, const Json& before, const Json& object) {
  const auto mark_of = [](const Json& node) { return sim::annotation(node, "haulout.dev/waiting-taint"); };
  // An agent writes taints only together with its mark.
  if (person_acts_ || (mark_of(before).empty() && mark_of(object).empty())) return;
  const auto of_others = [mark_of](const Json& node) {
    const std::string mark = mark_of(node);
    Json taints = Json::array();
    for (const Json& taint : sim::at(node, "/spec/taints")) {
      const std::string key = sim::text(taint, "/key");
      const std::string named = fmt::format("{}={}:{}@{}", key, sim::text(taint, "/value"), sim::text(taint, "/effect"),
                                            sim::text(taint, "/timeAdded"));
      if (named != mark && key != readiness_taint && key != drain::unschedulable_taint) taints.push_back(taint);
    }
    return taints;
  };
  if (of_others(before) != of_others(object))
    violated(fmt::format("P5: an agent changed taints of {} that it had not set: {} became {}", name,
                         sim::at(before, "/spec/taints").dump(), sim::at(object, "/spec/taints").dump()));
}

void FleetChecks::see_taints(NodeTruth& node, const Json& object) {
  bool tainted = false;
  for (const Json& taint : sim::at(object, "/spec/taints"))
    if (taint.at("key") == readiness_taint) tainted = true;
  if (!tainted)
    node.tainted_since.reset();
  else if (!node.tainted_since)
    node.tainted_since = clock_.now();
  if (tainted) node.tainted_last = clock_.now();
}

// P4: no node is uncordoned, and no slot is released, while a readiness taint is there that came with the update. An
// agent reads its Node right before that decision, and then writes until it succeeds.
void FleetChecks::check_readiness(const std::string& name, NodeTruth& node, const std::string& before,
                                  const std::string& state) {
  const auto sent = decided_.find(name);
  const TimePoint decided = sent != decided_.end() && sent->second.first == state ? sent->second.second : clock_.now();
  if (state == "draining" && !out_states.contains(before))
    node.taint_is_old = node.tainted_since || (node.tainted_last && *node.tainted_last + view_is_old >= decided);
  const bool goes_on = (before == "verifying" && state == "uncordoning") || (before == "soaking" && state == "idle");
  if (goes_on && !node.taint_is_old && node.tainted_since && *node.tainted_since + read_takes < decided)
    violated(fmt::format("P4: {} left {} although it has the taint {}", name, before, readiness_taint));
}

void FleetChecks::see_versions(const std::string& name, const std::string& record) {
  std::map<std::string, TimePoint>& failed = failed_[name];
  const std::map<std::string, TimePoint> before = std::exchange(failed, {});
  if (record.empty()) return;
  for (const std::string& version : agent::decode_record(record).failed_versions)
    failed[version] = before.contains(version) ? before.at(version) : clock_.now();
}

void FleetChecks::see_state(const std::string& name, NodeTruth& node, const std::string& state) {
  const std::string before = std::exchange(node.state, state);
  states.emplace_back(name, state);
  if (before == "draining" || state == "draining") node.drained_last = clock_.now();
  if (!state.empty() && state != "ready" && node.machine && node.machine->shows_ready())
    violated(fmt::format("P3: {} is {}, and its ready file is there", name, state));
  check_installation(name, node, before, state);
  check_readiness(name, node, before, state);
  // With --update=after-drain a node may drain during an installation. Its record may be lost, because its Node was
  // registered again or because the machine was replaced (which keeps its installation in these worlds). The agent then
  // drains the node, and waits for the end of the installation.
  if (state == "draining" && node.machine && node.machine->plan().updates.before_drain &&
      node.machine->updates().running())
    violated("P4: " + name + " drains while its image is written");
  if (!out_states.contains(state)) node.workplace = false;
  const bool by_version = !ramp.empty() || halt_after > 0;
  if (by_version && node.machine) see_waves(name, node, before, state);
  if (state != "draining") return;
  if (!out_states.contains(before)) {
    node.workplace = node.unschedulable && node.by_a_person;
    node.sent_away.clear();
    node.evicted_daemons.clear();
  }
  const Proof& proof = proofs_[name];
  // A node that was ready goes back to this state when a pod comes, and asks for its turn before it evicts one. P6 is
  // judged again at each eviction.
  if (before != "ready" && node.turns.empty() && (!node.turn_lost || !proof.turn || *node.turn_lost < *proof.turn))
    violated("P6: " + name + " drains without a turn");
  else if (!out_states.contains(before) && !node.turn_was_due)
    violated("P6: " + name + " drains although too many are out");
  if (!out_states.contains(before)) check_order(name, node);
}

void FleetChecks::see_waves(const std::string& name, NodeTruth& node, const std::string& before,
                            const std::string& state) {
  const bool begins = state == "draining" && !out_states.contains(before);
  const auto no_longer_certain = [&](auto& all) {
    for (auto& [version, nodes] : all)
      if (const auto found = nodes.find(name); found != nodes.end()) found->second = false;
  };
  if (begins || state == "degraded") no_longer_certain(came_back_);
  if (state == "idle" || state == "uncordoning" || state.empty()) no_longer_certain(failed_with_);
  if (state == "degraded" && !node.version.empty()) failed_with_[node.version][name] = true;
  if (state == "idle")
    came_back_[node.machine->version()][name] =
        before == "soaking" && !node.version.empty() && !node.rebooted_by_others;
  if (begins) {
    node.rebooted_by_others = false;
    node.version = version_wanted(*node.machine);
    // A person may request the reboot of a node whose agent does not know to which version it leads.
    const bool known = !node.machine->plan().unknown;
    if (known && !node.version.empty() && !node.turns.empty() && !node.wave_was_due)
      violated(fmt::format("P6: {} is updated to {}, but {}", name, node.version, node.not_due));
  } else if (!out_states.contains(state) && state != "degraded") {
    node.version.clear();
  }
}

// Finds the holders whose slot the wave and the halt of their roll-out allow now, by the server's true state. An agent
// decides by what it reads after it has got its slot, so one moment since then must have allowed it.
void FleetChecks::look_whose_wave_may_be() {
  if (ramp.empty() && halt_after == 0) return;
  for (auto& [name, node] : nodes_) {
    if (node.turns.empty() || node.wave_was_due || !node.machine) continue;
    const std::string version = version_wanted(*node.machine);
    node.not_due = version.empty() ? std::string() : refused_by_wave(name, version);
    node.wave_was_due = node.not_due.empty();
  }
}

// P6: returns why the roll-out of `version` does not allow this node to have a slot; an empty text if it may. What is
// not known for certain counts in the node's favour: agents do not know all nodes of their pool at all times, and a
// node that was updated again, or registered again, may or may not count as come back or as failed.
std::string FleetChecks::refused_by_wave(const std::string& name, const std::string& version) const {
  const std::string pool = pool_of(name);
  const auto of = [&version](const auto& all, const std::string& node) -> std::optional<bool> {
    const auto nodes = all.find(version);
    if (nodes == all.end() || !nodes->second.contains(node)) return std::nullopt;
    return nodes->second.at(node);
  };
  if (of(failed_with_, name)) return {};  // a node that has failed keeps its place
  std::size_t machines = 0, known = 0, holders = 0, failed_holders = 0, perhaps_failed_holders = 0;
  std::size_t back = 0, perhaps_back = 0, failed = 0, perhaps_failed = 0;
  for (const auto& [other, truth] : nodes_) {
    if (pool_of(other) != pool) continue;
    machines += truth.machine != nullptr;
    known += truth.recorded_since && clock_.now() - *truth.recorded_since > others_notice;
    if (other == name) continue;
    const auto has_failed = of(failed_with_, other), came_back = of(came_back_, other);
    const bool certain = has_failed.value_or(false);
    if (!truth.turns.empty()) {
      // A node that has not begun yet is to be updated to what it wants.
      const bool waits = truth.version.empty() && truth.machine && !out_states.contains(truth.state);
      if ((waits ? version_wanted(*truth.machine) : truth.version) != version && !certain) continue;
      ++holders;
      failed_holders += certain;
      perhaps_failed_holders += !certain;
      continue;
    }
    failed += certain;
    perhaps_failed += !certain && (has_failed || truth.out_since || truth.state == "degraded");
    back += !certain && came_back.value_or(false) && !truth.out_since;
    perhaps_back += !certain && came_back && !(*came_back && !truth.out_since);
  }
  if (halt_after > 0 && failed + failed_holders >= halt_after)
    return fmt::format("{} nodes have failed with it, and the roll-out halts at {}", failed + failed_holders,
                       halt_after);
  std::size_t allowed = 0;
  for (std::size_t nodes = std::max<std::size_t>(1, known); nodes <= std::max<std::size_t>(1, machines); ++nodes)
    for (std::size_t more = 0; more <= perhaps_back; ++more)
      for (std::size_t ill = 0; ill <= (halt_after > 0 ? perhaps_failed + perhaps_failed_holders : 0); ++ill) {
        const std::size_t of_them = halt_after > 0 ? failed + failed_holders + ill : 0;
        const std::size_t end = end_of_wave(ramp, back + more + of_them, nodes);
        allowed = std::max(allowed, end == SIZE_MAX ? SIZE_MAX : end - std::min(end, back + more + failed));
      }
  if (holders < allowed) return {};
  return fmt::format(
      "{} other nodes are updated to it, at least {} and at most {} have come back, and {} have failed, so the wave "
      "allows {}",
      holders, back, back + perhaps_back, failed + failed_holders, allowed);
}

// Sees what of a node decides its place in the order of a roll-out.
void FleetChecks::see_line(NodeTruth& node, const Json& object) {
  const Json& labels = sim::at(object, "/metadata/labels");
  const auto value = [&labels](const char* key) { return labels.is_object() ? labels.value(key, "") : std::string(); };
  node.zone = value("topology.kubernetes.io/zone");
  node.rank = value("rank");
  if (roll_out_order == "asked")
    node.needed_since = agent::decode_record(sim::annotation(object, "haulout.dev/record")).needed_since;
  const std::string reason = value("haulout.dev/reason");
  if (reason == "RebootedMeanwhile") node.rebooted_by_others = true;
  const bool in_line = node.state == "waiting" && !node.out_since && node.turns.empty() &&
                       (reason == "WaitingForSlot" || reason == "WaitingForOrder");
  if (in_line != node.in_line_since.has_value())
    node.in_line_since = in_line ? std::optional(clock_.now()) : std::nullopt;
  if (node.state != "waiting") {
    node.may_be_passed_over = false;
    node.left_free = 0s;
  }
  if (roll_out_order != "any") see_free_slots();
}

// Notes for how long a slot has been free in each pool. After ten minutes, also if it was taken in between, agents pass
// over a node that does not take it.
void FleetChecks::see_free_slots() {
  std::map<std::string, std::size_t> held, members;
  for (const auto& [lease, holder] : turns_) ++held[pool_of(holder.first)];
  for (const auto& [name, truth] : nodes_) members[pool_of(name)] += !truth.uid.empty();
  for (const auto& [pool, nodes] : members) {
    const auto own_limit = limits.find(pool);
    const bool free = held[pool] < (own_limit == limits.end() ? limit_(nodes) : own_limit->second);
    std::optional<TimePoint>& since = free_since_[pool];
    for (auto& [name, truth] : nodes_) {
      if (!since || pool_of(name) != pool || truth.state != "waiting") continue;
      truth.left_free += clock_.now() - *since;
      truth.may_be_passed_over = truth.may_be_passed_over || truth.left_free > patience_at_least;
    }
    since = free ? std::optional(clock_.now()) : std::nullopt;
  }
}

// Returns true if the first node certainly goes before the other one.
bool FleetChecks::goes_before(const NodeTruth& one, const NodeTruth& other) const {
  if (roll_out_order == "asked")
    return one.needed_since && other.needed_since && *one.needed_since < *other.needed_since;
  const std::string& a = roll_out_order == "zone" ? one.zone : one.rank;
  const std::string& b = roll_out_order == "zone" ? other.zone : other.rank;
  const auto digits = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  };
  if (a.empty() || b.empty()) return !a.empty() && b.empty();
  if (digits(a) && digits(b)) return std::stoul(a) < std::stoul(b);
  return digits(a) != digits(b) ? digits(a) : a < b;
}

// Checks that a node that begins its update has let those go first that were before it in the line when it looked.
void FleetChecks::check_order(const std::string& name, const NodeTruth& node) {
  if (roll_out_order == "any" || !node.turn_since) return;
  if (node.by_a_person || (node.out_since && *node.out_since <= *node.turn_since)) return;  // it was unavailable before
  for (const auto& [version, nodes] : failed_with_)
    if (nodes.contains(name)) return;  // it keeps the place that it had
  see_free_slots();
  for (const auto& [other, truth] : nodes_) {
    if (other == name || pool_of(other) != pool_of(name) || truth.may_be_passed_over || !truth.recorded) continue;
    if (!truth.in_line_since || *truth.in_line_since + look_takes > *node.turn_since || !goes_before(truth, node))
      continue;
    violated(fmt::format("the order: {} begins its update before {}, by {}", name, other, roll_out_order));
  }
}

void FleetChecks::see_lease(const sim::Change& change) {
  const std::string holder = sim::text(*change.object, "/spec/holderIdentity");
  NodeTruth& node = nodes_[node_of(holder)];
  if (change.type == sim::ChangeType::deleted) {
    turns_.erase(change.key.name);
    if (!person_acts_ && node.recorded && uid_of_holder(holder) == node.uid &&
        (out_states.contains(node.state) || node.state == "degraded"))
      violated(fmt::format("P6: the turn of {} was freed while it is {}", node_of(holder), node.state));
    if (node.turns.erase(change.key.name) > 0 && node.turns.empty()) node.turn_lost = clock_.now();
    if (node.turns.empty()) node.turn_since.reset();
  } else if (change.type == sim::ChangeType::added) {
    turns_[change.key.name] = {node_of(holder), uid_of_holder(holder)};
    if (uid_of_holder(holder) != node.uid) return;
    if (node.turns.empty()) {
      node.turn_was_due = node.wave_was_due = false;
      node.turn_since = clock_.now();
    }
    node.turns.insert(change.key.name);
    node.turn_lost.reset();
  } else if (change.before && sim::text(*change.before, "/spec/holderIdentity") != holder) {
    violated("P6: Lease " + change.key.name + " changed hands");
  }
  look_whose_turn_may_be();
  look_whose_wave_may_be();
  if (roll_out_order != "any") see_free_slots();
}

// Finds the holders whose slot the limit of their pool allows now. Applies the same rule as the agents, but to the
// server's true state: counts the slots of other nodes of the pool, and its nodes that are unavailable without a slot.
void FleetChecks::look_whose_turn_may_be() {
  for (auto& [name, node] : nodes_) {
    if (node.turns.empty() || node.turn_was_due) continue;
    const std::string pool = pool_of(name);
    std::set<std::string> busy;
    std::size_t others = 0, members = 0;
    for (const auto& [lease, holder] : turns_)
      if (holder.first != name && pool_of(holder.first) == pool) {
        ++others;
        busy.insert(holder.first);
      }
    for (const auto& [other, truth] : nodes_) {
      if (pool_of(other) != pool) continue;
      members += !truth.uid.empty();
      others +=
          other != name && !busy.contains(other) && truth.out_since && clock_.now() - *truth.out_since > others_notice;
    }
    const auto own_limit = limits.find(pool);
    node.turn_was_due = others < (own_limit == limits.end() ? limit_(members) : own_limit->second);
  }
}

std::string FleetChecks::pool_of(const std::string& node) const {
  const auto found = pools.find(node);
  return found == pools.end() ? "default" : found->second;
}

// With `leaves_cordoned_nodes_alone`, an agent must not use a node that a person had cordoned before its drain began.
void FleetChecks::check_workplace(const std::string& name, const std::string& what) {
  if (leaves_cordoned_nodes_alone && nodes_[name].workplace)
    violated(fmt::format("P5: {} of {}, which a person had cordoned before", what, name));
}

void FleetChecks::see_pod(const sim::Change& change) {
  const Json& object = *change.object;
  PodTruth& pod = pods_[sim::uid_of(object)];
  pod.key = change.key.ns + "/" + change.key.name;
  pod.node = sim::text(object, "/spec/nodeName");
  if (!sim::terminating(object)) pod.had_finished = sim::pod_finished(object);
  pod.of_job_set = sim::label(object, "jobset.sigs.k8s.io/jobset-name").has_value();
  if (!pod.node.empty() && pod.bound == TimePoint::max()) {
    pod.bound = clock_.now();
    pod.came_back = nodes_[pod.node].unschedulable;
    if (pod.came_back) ++nodes_[pod.node].came[app_of(object)];
  }
  const auto available = [](const sim::Object& one) { return one && sim::pod_ready(*one) && !sim::terminating(*one); };
  const bool lost = available(change.before) && (change.type == sim::ChangeType::deleted || !available(change.object));
  const bool evicted = sim::text(sim::condition(object, "DisruptionTarget"), "/status") == "True";
  if (lost && !evicted) disturbed_[app_of(object)] = clock_.now();
  if (change.type == sim::ChangeType::added) disturbed_.try_emplace(app_of(object), clock_.now());
}

void FleetChecks::see_answer(const sim::AuditEntry& entry) {
  if (!entry.applied) return;
  if (entry.verb == "delete" && entry.resource == "pods") violated("P1: an agent deleted pod " + entry.name);
  if (entry.subresource == "eviction") check_eviction(entry);
}

// Called with the server's answer, when the pod is already terminating.
void FleetChecks::check_eviction(const sim::AuditEntry& entry) {
  ++evictions;
  const std::string key = entry.ns + "/" + entry.name;
  const auto pod = pods_.find(entry.uid);
  if (pod == pods_.end() || pod->second.key != key)
    return violated("P2: an eviction of " + key + " took effect that names no instance of it");
  NodeTruth& node = nodes_[pod->second.node];
  const TimePoint left_last =
      node.machine ? std::max(node.drained_last, node.machine->shut_down_last) : node.drained_last;
  if (node.state != "draining" && clock_.now() - left_last > 2min)
    violated(fmt::format("P11: {} was evicted from {}, which is {}", key, pod->second.node, node.state));
  if (clock_.now() - left_last > 2min || node.state == "draining") check_workplace(pod->second.node, "an eviction");
  // While a machine goes down, its agent waits for nothing. No node has two members of one gang.
  if (policy_.gangs == drain::Treatment::park && pod->second.of_job_set && !pod->second.had_finished &&
      node.state == "draining")
    violated("gangs: " + key + " was evicted although its gang runs");
  const Json object = cluster_.get("pods", entry.ns, entry.name);
  if (sim::text(sim::controller_of(object), "/kind") == "DaemonSet")
    node.evicted_daemons.insert(sim::text(sim::controller_of(object), "/uid"));
  if (!evicted_.insert(entry.uid).second) return;
  if (object.is_null()) return;
  if (pod->second.came_back && ++node.sent_away[app_of(object)] == most_returns + 1)
    violated(fmt::format("P10: pods of {} are evicted from {} again and again", app_of(object), pod->second.node));
  check_budgets(object);
}

// `pod` has just been evicted. Checks that its budgets still have as many Ready pods as they need.
void FleetChecks::check_budgets(const Json& pod) {
  const auto disturbed = disturbed_.find(app_of(pod));
  if (disturbed != disturbed_.end() && clock_.now() - disturbed->second < controllers_notice) return;
  if (sim::text(pod, "/status/phase") != "Running" || !sim::pod_ready(pod)) return;
  const std::string app = sim::text(pod, "/metadata/labels/app");
  std::int64_t healthy = 0;
  for (const Json& other : cluster_.all("pods"))
    healthy += app_of(other) == app_of(pod) && sim::pod_ready(other) && !sim::terminating(other);
  for (const Json& budget : cluster_.all("poddisruptionbudgets")) {
    if (sim::ns_of(budget) != sim::ns_of(pod)) continue;
    if (sim::text(budget, "/spec/selector/matchLabels/app") != app) continue;
    const std::int64_t needed = sim::number(budget, "/spec/minAvailable");
    if (healthy < needed)
      violated(fmt::format("budgets: {} was evicted, {} of {} are left", sim::name_of(pod), healthy, needed));
  }
}

void FleetChecks::life_began(Machine& machine) {
  proofs_[machine.node()] = {};
  decided_.erase(machine.node());
  nodes_[machine.node()].sent_away.clear();
  nodes_[machine.node()].machine = &machine;
}

void FleetChecks::before_request(Machine& machine, const sim::Call& call) {
  check_rate(machine);
  if (!is_allowed(cluster_, call, machine.node(), surges, asks))
    violated(fmt::format("P11: the agent of {} asked for {} {}", machine.node(), call.verb, call.path));
  if (call.verb == "patch" && call.info && call.info->resource == "nodes") {
    const Json patch = Json::parse(call.request.body, nullptr, false);
    const Json& labels = sim::at(patch, "/metadata/labels");
    const std::string state = labels.is_object() ? labels.value("haulout.dev/state", "") : "";
    if (!state.empty() && decided_[machine.node()].first != state) decided_[machine.node()] = {state, clock_.now()};
  }
  if (call.verb != "create" || call.subresource != "eviction") return;
  const Json body = Json::parse(call.request.body, nullptr, false);
  const auto pod = pods_.find(sim::text(body, "/deleteOptions/preconditions/uid"));
  if (pod == pods_.end() || pod->second.key != call.ns + "/" + call.name || pod->second.node != machine.node())
    violated(
        fmt::format("P2: the agent of {} evicts {}/{}, which names no pod there", machine.node(), call.ns, call.name));
}

void FleetChecks::check_rate(const Machine& machine) {
  constexpr std::size_t most = 120;
  auto& lately = lately_[machine.node()];
  lately.push_back(clock_.now());
  while (lately.front() < clock_.now() - 10s) lately.pop_front();
  if (lately.size() != most + 1) return;
  violated(fmt::format("P10: the agent of {} sends {} requests in ten seconds", machine.node(), lately.size()));
}

void FleetChecks::after_request(Machine& machine, const sim::Call& call, TimePoint sent, const http::Response* answer) {
  if (!call.info) return;
  // An agent whose requests fail can take nothing back, so the time counts from its last one.
  if (!answer || (answer->status >= 400 && answer->status != 409))
    for (auto& [type, truth] : nodes_[machine.node()].conditions)
      if (truth.untrue_since) truth.untrue_since = clock_.now();
  Proof& proof = proofs_[machine.node()];
  std::optional<TimePoint>* read = nullptr;
  if (call.verb == "list" && call.info->resource == "leases") read = &proof.turn;
  if (call.verb == "get" && call.info->resource == "nodes") read = &proof.node;
  if (call.verb == "list" && call.info->resource == "pods") read = &proof.pods;
  if (read && is_whole(answer)) *read = sent;
}

bool FleetChecks::must_leave(const Json& object) const {
  const auto pod = k8s::decode<k8s::Pod>(object.dump());
  const auto known = pods_.find(sim::uid_of(object));
  const bool had_finished = known != pods_.end() && known->second.had_finished;
  if (had_finished && policy_.finished == drain::Treatment::skip) return false;
  if (leaves_pinned_pods) {
    const auto node = nodes_.find(sim::text(object, "/spec/nodeName"));
    const auto came = node->second.came.find(app_of(object));
    if (came != node->second.came.end() && came->second >= 2) return false;
  }
  return pod && drain::decide(*pod, policy_, {}, clock_.wall_now(), {.stays_because = "checked otherwise"}).verdict !=
                    drain::Verdict::skip;
}

// Returns true for a pod of a DaemonSet that is selected to be evicted, although no pod of this DaemonSet was evicted
// from its node in this attempt.
bool FleetChecks::is_daemon_without_time(const Json& object) const {
  const auto& selectors = policy_.evict_daemon_sets;
  const auto pod = k8s::decode<k8s::Pod>(object.dump());
  if (!pod || !drain::is_daemon_pod(*pod)) return false;
  const bool selected = std::any_of(selectors.begin(), selectors.end(),
                                    [&pod](const auto& selector) { return selector.matches(pod->labels); });
  const auto node = nodes_.find(sim::text(object, "/spec/nodeName"));
  return selected && node != nodes_.end() && !node->second.evicted_daemons.contains(pod->controller->uid);
}

// The agent of this machine claims that the node is empty and cordoned, and that it has its slot.
void FleetChecks::check_proof(const Machine& machine, const std::string& what) {
  const std::string& name = machine.node();
  const NodeTruth& node = nodes_[name];
  const Proof& proof = proofs_[name];
  const TimePoint now = clock_.now();
  const auto fresh = [now](const std::optional<TimePoint>& read) { return read && now - *read < proof_takes; };
  if (!fresh(proof.turn) || !fresh(proof.pods)) violated(fmt::format("P3: {} {} without a proof", name, what));
  const auto lost_before = [](const std::optional<TimePoint>& lost, const std::optional<TimePoint>& read) {
    return !lost || !read || *lost < *read;
  };
  if (node.turns.empty() && lost_before(node.turn_lost, proof.turn))
    violated(fmt::format("P6: {} {} without a turn", name, what));
  if (!node.unschedulable && lost_before(node.cordon_lost, std::min(proof.node, proof.pods)))
    violated(fmt::format("P3: {} {} without a cordon", name, what));
  for (const Json& pod : cluster_.all("pods")) {
    if (sim::text(pod, "/spec/nodeName") != name) continue;
    const bool is_known = proof.pods && pods_[sim::uid_of(pod)].bound < *proof.pods;
    if (is_known && is_daemon_without_time(pod))
      violated(fmt::format("P3: {} {}, and pod {} had no time to end", name, what, sim::name_of(pod)));
    if (!must_leave(pod)) continue;
    if (!proof.pods || pods_[sim::uid_of(pod)].bound < *proof.pods)
      violated(fmt::format("P3: {} {} under pod {}", name, what, sim::name_of(pod)));
  }
}

void FleetChecks::ready_shown(Machine& machine) {
  const bool alone = machine.plan().agents == 1;  // otherwise the other agent may just have changed the state
  if (alone && nodes_[machine.node()].state != "ready")
    violated("P3: " + machine.node() + " shows ready in another state");
  check_proof(machine, "shows ready");
}

// An installation may begin only on a node that is drained, as for a reboot. An image that only the next boot runs may
// also be written before the drain, while the agent neither has a slot nor has cordoned the node.
void FleetChecks::installation_began(Machine& machine) {
  const std::string& name = machine.node();
  check_version(machine, machine.plan().updates.image, "installs");
  if (machine.plan().updates.before_drain) {
    const NodeTruth& node = nodes_[name];
    if (node.state != "pending") violated(fmt::format("P7: {} writes an image, and is {}", name, node.state));
    if (!node.turns.empty()) violated("P6: " + name + " writes an image and holds a slot");
    return;
  }
  if (nodes_[name].state != "updating") violated("P7: " + name + " installs updates before it has written so");
  const Json node = cluster_.get("nodes", "", name);
  if (!agent::decode_record(sim::annotation(node, "haulout.dev/record")).installing)
    violated("P7: " + name + " installs updates, and its record does not say so");
  check_workplace(name, "an installation");
  check_proof(machine, "installs updates");
}

// Another node never installs, and never boots, a version that has failed.
void FleetChecks::check_version(const Machine& machine, const std::string& version, const std::string& what) {
  const auto names = [&version](const auto& failed) { return failed.contains(version); };
  if (const auto own = failed_.find(machine.node()); own != failed_.end() && names(own->second)) return;
  for (const auto& [name, failed] : failed_)
    if (names(failed) && pool_of(name) == pool_of(machine.node()) && clock_.now() - failed.at(version) > proof_takes)
      violated(fmt::format("versions: {} {} {}, which has failed on {}", machine.node(), what, version, name));
}

// P4: a node leaves the state `updating` for a reboot, or for the verification without a reboot, only after its
// installation has succeeded.
void FleetChecks::check_installation(const std::string& name, const NodeTruth& node, const std::string& before,
                                     const std::string& state) {
  if (before != "updating" || state.empty() || !node.machine) return;
  const FakeUpdates& updates = node.machine->updates();
  if ((state == "ready" || state == "verifying") && (updates.half_installed() || updates.running()))
    violated(fmt::format("P4: {} goes on to {}, and its updates are not installed", name, state));
  if (state != "degraded" && state != "draining" && updates.running())
    violated(fmt::format("P7: {} is {} during an installation", name, state));
}

void FleetChecks::reboot_asked(Machine& machine, const std::string& method) {
  // Checks that a second request by the same method comes only after the limit of the first one. Requests under another
  // boot id count as requests after a reboot.
  const auto& last = machine.accepted();
  const Json shown = cluster_.get("nodes", "", machine.node());
  const bool requested = agent::decode_record(sim::annotation(shown, "haulout.dev/record")).requested;
  // A Node that was registered again has lost the record of the request.
  const bool recorded = last && last->node_uid == sim::text(shown, "/metadata/uid");
  const auto ago = last ? clock_.now() - last->at : Duration::max();
  if (!requested && recorded && last->method == method && last->boot_id == *machine.boot_id() && ago < reboot_time)
    violated(fmt::format("P7: {} asks {} for its reboot again after {:.0f} s", machine.node(), method,
                         std::chrono::duration<double>(ago).count()));
  if (machine.updates().running()) violated("P3: " + machine.node() + " reboots during an installation");
  const NodeTruth& node = nodes_[machine.node()];
  if (node.state != "rebooting") violated("P7: " + machine.node() + " reboots before it has written so");
  if (const auto& read = proofs_[machine.node()].node; !read || clock_.now() - *read > proof_takes)
    violated("P3: " + machine.node() + " reboots without a look at its Node");
  check_workplace(machine.node(), "a reboot");
  if (machine.plan().updates.on) check_version(machine, machine.plan().target, "boots");
  check_proof(machine, "reboots");
}

void FleetChecks::going_down(Machine& machine, bool by_agent) {
  reboots += by_agent;
  const sim::Json node = cluster_.get("nodes", "", machine.node());
  if (!by_agent || agent::decode_record(sim::annotation(node, "haulout.dev/record")).requested) return;
  // A Node that was registered again has lost the record of earlier reboots, and usually stands for another machine.
  auto& downs = downs_[sim::uid_of(node)];
  downs.push_back(clock_.now());
  while (downs.front() < clock_.now() - 24h) downs.pop_front();
  if (reboots_per_day > 0 && downs.size() > reboots_per_day)
    violated(fmt::format("the brake: {} goes down {} times within a day", machine.node(), downs.size()));
}

}  // namespace haulout::fleet
