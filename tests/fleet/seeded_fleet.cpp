#include "tests/fleet/seeded_fleet.hpp"

#include <fmt/format.h>

#include "agent/gates/gate.hpp"
#include "agent/node/lifecycle_conditions.hpp"
#include "agent/node/pool.hpp"
#include "agent/slots/fleetlock_service.hpp"
#include "agent/slots/fleetlock_slots.hpp"
#include "drain/cordon.hpp"
#include "k8s/codec.hpp"

namespace haulout::fleet {
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

// Longer than the longest time for which an agent waits without writing anything: the cap of its backoff, one hour.
constexpr Duration quiet = 70min;
// Longer than an agent waits for its kubelet to report a boot.
constexpr Duration agents_learn = 5min;
constexpr Duration longest_first_part = 12h;
constexpr Duration longest_repair = 12h;
constexpr const char* outsider = "m1";  // id of the machine outside of the cluster

agent::GateAnswer closed(const char* reason, agent::Gate::Effect effect) {
  return {{{.name = reason,
            .verdict = agent::Gate::Verdict::closed,
            .reason = reason,
            .message = reason,
            .effect = effect}}};
}

}  // namespace

SeededFleet::SeededFleet(FleetPlan plan, bool traces_requests)
    : plan_(std::move(plan)),
      fault_rng_(plan_.seed + 3'000'017),
      faulty_(cluster.api(), clock, fault_rng_,
              [this] {
                auto rules = plan_.faults;
                for (auto& rule : rules) rule.until = clock.now() + (rule.until - TimePoint{});
                return rules;
              }()),
      outsider_rng_(plan_.seed + 4'000'037) {
  world_rng = SeededRng(plan_.seed + 1'000'003);
  rng = SeededRng(plan_.seed + 2'000'003);
  outcome_.seed = plan_.seed;
  outcome_.setting = plan_.setting();
  cluster.timing() = plan_.timing;
  limit = plan_.limit;
  limit_percent = plan_.limit_percent;
  slots.ramp = *agent::parse_ramp(plan_.ramp);
  slots.halt_after = plan_.halt_after;
  slots.order = *agent::parse_roll_out_order(plan_.roll_out_order);
  options.ramp = !plan_.ramp.empty() || plan_.halt_after > 0;
  checks.ramp = plan_.ramp;
  checks.halt_after = plan_.halt_after;
  checks.roll_out_order = plan_.roll_out_order;
  checks.reboots_per_day = plan_.reboots_per_day;
  const bool server_fails = std::any_of(plan_.incidents.begin(), plan_.incidents.end(),
                                        [](const Incident& incident) { return incident.node.empty(); });
  if (plan_.faults.empty() && !server_fails) checks.conditions_late = conditions_late_at_most;
  if (plan_.drain_timeout > 0s) options.drain.timeout = plan_.drain_timeout;
  options.drain.guards.surge = plan_.surge;
  checks.surges = plan_.surge != drain::Surge::off;
  if (checks.surges) options.drain.guards.surge_limit = plan_.surge_limit;
  options.drain.policy.gangs = plan_.gangs;
  if (plan_.evicts_daemon_sets)
    options.drain.policy.evict_daemon_sets = {k8s::parse_label_selector("app=watcher").value()};
  if (plan_.waiting_taint) options.waiting_taint = agent::WaitingTaint{waiting_taint_key};
  options.times.soak = plan_.soak;
  options.spread = plan_.spread;
  // Power cuts during installations count as failed attempts, and this class repairs no node that is degraded because
  // of them. Therefore a node has 1000 attempts.
  options.update_attempts = 1000;
  options.drain.policy.pinned = plan_.pinned;
  checks.leaves_pinned_pods = plan_.pinned == drain::Treatment::skip;
  way = [this] { return &wire(); };
  gates = [this](k8s::Client&, const std::string&) {
    const auto answer = [this](const agent::GateQuestion& question) {
      const agent::Record& record = question.record;
      const bool brakes = question.when != agent::GateQuestion::When::under_way && !question.requested;
      const auto brake =
          brakes ? agent::reboot_brake(record.reboots, question.pending, clock.wall_now(), checks.reboots_per_day)
                 : std::nullopt;
      if (brake) return closed(brake->reason.c_str(), agent::Gate::Effect::degrades);
      const agent::Gate cordon = agent::cordon_gate(question.node, record, plan_.cordoned_nodes);
      if (cordon.closed()) return agent::GateAnswer{{cordon}};
      return paused_.contains(question.node.name) ? closed("Paused", agent::Gate::Effect::gives_up)
                                                  : agent::GateAnswer{};
    };
    return std::make_unique<ScriptedGates>(clock, answer, &pauses_);
  };
  if (traces_requests)
    cluster.server().on_answer([this](const sim::AuditEntry& entry) { note("    server: " + entry.text()); });
}

SeededOutcome SeededFleet::play() {
  stage();
  run(with_task_group([this](TaskGroup& group) {
    group.spawn(cluster.run());
    return play_through();
  }));
  outcome_.violations = checks.violations;
  outcome_.trace = lines;
  outcome_.took = elapsed();
  for (const auto& each : machines) outcome_.requests += each->requests();
  outcome_.faults_struck = faulty_.struck().size();
  outcome_.reboots = checks.reboots;
  outcome_.evictions = checks.evictions;
  return std::move(outcome_);
}

void SeededFleet::stage() {
  for (const PlannedMachine& planned : plan_.machines) {
    if (plan_.pools == Pools::by_name) slots.grouping.pool = planned.pool;
    if (plan_.pools == Pools::by_label) slots.grouping.pool_label = "team";
    options.pool = [pool = planned.pool](const k8s::Node&) { return pool; };
    Machine& made = machine(planned.name, planned.plan);
    made.on_told = [this, told = std::string()](const agent::Status& status) mutable {
      if (std::exchange(told, status.reason) != status.reason) news_at_ = clock.now();
    };
    for (const CrashPoint& point : planned.crashes) made.crash_at(point);
    Json labels = Json::object();
    if (plan_.pools == Pools::by_label) labels["team"] = planned.pool;
    if (plan_.pools == Pools::by_role && planned.pool == agent::control_plane_pool)
      labels[std::string(agent::control_plane_label)] = "";
    if (!planned.zone.empty()) labels["topology.kubernetes.io/zone"] = planned.zone;
    if (!planned.rank.empty()) labels["rank"] = planned.rank;
    cluster.patch("nodes", "", planned.name, {{"metadata", {{"labels", labels}}}});
    if (planned.held_by_a_person)
      cluster.patch("nodes", "", planned.name,
                    {{"metadata", {{"annotations", {{"karpenter.sh/do-not-disrupt", "true"}}}}}});
    // With NoSchedule there might be no room for the pods of other nodes, and their budgets would never allow a drain.
    if (planned.never_quite_ready) cluster.taint(planned.name, old_readiness_taint, "PreferNoSchedule");
    checks.pools[planned.name] = planned.pool;
  }
  if (plan_.pools == Pools::by_role) checks.limits[std::string(agent::control_plane_pool)] = 1;
  checks.leaves_cordoned_nodes_alone = plan_.cordoned_nodes == agent::CordonedNodes::wait;
  checks.pools["spare"] = "none";
  for (const Json& object : plan_.objects) add(object);
}

asio::awaitable<void> SeededFleet::play_through() {
  co_await with_task_group([this](TaskGroup& group) -> asio::awaitable<void> {
    for (std::size_t i = 0; i < machines.size(); ++i) {
      group.spawn(machines[i]->live());
      if (plan_.machines[i].plan.methods.empty())
        group.spawn(somebody_reboots(*machines[i], plan_.machines[i].somebody_looks));
    }
    if (plan_.outsider) group.spawn(outsider_updates(*plan_.outsider));
    for (const Incident& incident : plan_.incidents)
      cluster.after(incident.after, [this, incident] { perform(incident); });
    co_await until_nothing_moves();
    for (std::size_t i = 0; i < machines.size(); ++i) look_at(plan_.machines[i], *machines[i]);
    repair();
    co_await until_all_is_well();
    look_at_the_end();
  });
  // Some responses may still be on their way. Lets them arrive after their receivers have ended.
  co_await clock.sleep_until(clock.now() + 1s);
  if (cluster.open_watches() != 0) checks.violated("a watch was left open");
}

asio::awaitable<void> SeededFleet::somebody_reboots(Machine& machine, Duration looks) {
  for (;;) {
    co_await clock.sleep_until(clock.now() + looks);
    if (machine.shows_ready()) machine.power_cycle();
  }
}

asio::awaitable<void> SeededFleet::outsider_updates(PlannedOutsider planned) {
  outsider_done_ = false;
  checks.pools[agent::outside_machine(outsider).name] = planned.pool;
  co_await clock.sleep_until(clock.now() + planned.after);
  co_await ask_server_until_granted(planned, "/v1/pre-reboot");
  note("* the machine outside of the cluster has a slot of pool " + planned.pool);
  outsider_holds_ = true;
  check_holders(planned);
  co_await clock.sleep_until(clock.now() + planned.holds);
  const auto leases = cluster.all("leases");
  const std::string own = agent::outside_machine(outsider).holder();
  if (std::none_of(leases.begin(), leases.end(),
                   [&](const Json& lease) { return sim::text(lease, "/spec/holderIdentity") == own; }))
    checks.violated("P6: the slot of the machine outside of the cluster was freed while it updates itself");
  outsider_holds_ = false;
  co_await ask_server_until_granted(planned, "/v1/steady-state");
  note("* the machine outside of the cluster has given its slot back");
  outsider_done_ = true;
}

asio::awaitable<void> SeededFleet::ask_server_until_granted(PlannedOutsider planned, std::string path) {
  for (;;) {
    // A server that is killed is one that is cancelled at any moment.
    const Duration lives =
        planned.servers_die && outsider_rng_.chance(50) ? outsider_rng_.between(1ms, 300ms) : Duration(1min);
    const auto granted = co_await with_deadline(clock, clock.now() + lives, ask_server(planned, path));
    if (granted && *granted) co_return;
    co_await clock.sleep_until(clock.now() + outsider_rng_.between(1s, 1min));
  }
}

Task<bool> SeededFleet::ask_server(PlannedOutsider planned, std::string path) {
  agent::FleetLockService server(outsider_client_, {.pools = {planned.pool}, .limit = planned.limit});
  http::Request request;
  request.method = "POST";
  request.target = std::move(path);
  request.headers.set("fleet-lock-protocol", "true");
  request.body = agent::encode_fleetlock_request(outsider, planned.pool);
  const agent::FleetLockAnswer answer = co_await server.answer(std::move(request));
  co_return answer.status == 200;
}

void SeededFleet::check_holders(const PlannedOutsider& planned) {
  std::set<std::string> holders;
  for (const Json& lease : cluster.all("leases"))
    if (sim::label(lease, "haulout.dev/pool") == planned.pool) holders.insert(sim::text(lease, "/spec/holderIdentity"));
  // The agents may have had a higher limit than the server when they took their slots after it.
  std::size_t most = plan_.limit_percent > 0 ? machines.size() : planned.limit;
  for (const Incident& incident : plan_.incidents)
    if (incident.deed == Deed::change_limit) most = std::max(most, incident.number);
  if (holders.size() > most)
    checks.violated(fmt::format("P6: {} hold slots of pool {}, which has {}", holders.size(), planned.pool, most));
}

asio::awaitable<void> SeededFleet::until_nothing_moves() {
  co_await clock.sleep_until(clock.now() + plan_.healed_after + 30s);
  const TimePoint end = clock.now() + longest_first_part;
  while (clock.now() < end && !all_is_well()) {
    const std::size_t seen = checks.states.size();
    co_await clock.sleep_until(clock.now() + quiet);
    // An agent that has just started may know less than the one before it, so its reason may still change. Waits until
    // no agent has reported a new reason for `agents_learn`.
    while (clock.now() < end && clock.now() < news_at_ + agents_learn)
      co_await clock.sleep_until(news_at_ + agents_learn);
    if (checks.states.size() == seen) co_return;
  }
  const bool held = std::any_of(machines.begin(), machines.end(),
                                [this](const auto& each) { return something_holds_turns(pool_of(each->node())); });
  if (!all_is_well() && !held) checks.violated("P8: the fleet never comes to rest");
}

asio::awaitable<void> SeededFleet::until_all_is_well() {
  const TimePoint end = clock.now() + longest_repair;
  do {
    while (clock.now() < end && !all_is_well()) co_await clock.sleep_until(clock.now() + 1min);
    co_await clock.sleep_until(clock.now() + 5min);
  } while (clock.now() < end && !all_is_well());
}

bool SeededFleet::all_is_well() const {
  if (slots_held() > 0 || !outsider_done_) return false;
  return std::all_of(machines.begin(), machines.end(), [this](const auto& each) {
    return each->powered() && !each->wants_update() && state(each->node()) == "idle";
  });
}

void SeededFleet::perform(const Incident& incident) {
  note(fmt::format("* {} {} {}", to_string(incident.deed), incident.node, incident.number));
  if (incident.node.empty())
    perform_on_server(incident);
  else
    perform_on_node(incident);
}

void SeededFleet::perform_on_server(const Incident& incident) {
  switch (incident.deed) {
    case Deed::restart_server: cluster.restart(incident.lasts); break;
    case Deed::drop_connections: cluster.drop_connections(); break;
    case Deed::close_watches: cluster.close_watches(); break;
    case Deed::silence_watches: cluster.silence_watches(); break;
    case Deed::throttle: cluster.throttle(incident.lasts, 2); break;
    case Deed::compact:
      cluster.compact();
      cluster.close_watches();
      break;
    default: break;
  }
}

void SeededFleet::perform_on_node(const Incident& incident) {
  const std::string& name = incident.node;
  const auto found =
      std::find_if(machines.begin(), machines.end(), [&](const auto& each) { return each->node() == name; });
  if (incident.deed == Deed::open_budget) {
    cluster.patch("poddisruptionbudgets", "shop", name, {{"spec", {{"minAvailable", 0}}}});
    return;
  }
  if (incident.deed == Deed::finish_work) {
    const Json no_longer = Json::array({{{"type", "Ready"}, {"status", "False"}}});
    cluster.patch("pods", "shop", name, {{"status", {{"phase", "Succeeded"}, {"conditions", no_longer}}}});
    return;
  }
  if (incident.deed == Deed::remove_workload || incident.deed == Deed::remove_toleration)
    return see_to_workload(name, incident.deed == Deed::remove_workload);
  Machine& machine = **found;
  switch (incident.deed) {
    case Deed::cordon: cordon(name); break;
    case Deed::uncordon: uncordon(name); break;
    case Deed::pause:
      paused_.insert(name);
      pauses_.publish();
      break;
    case Deed::resume:
      paused_.erase(name);
      pauses_.publish();
      break;
    case Deed::request_reboot:
      cluster.patch("nodes", "", name, {{"metadata", {{"annotations", {{"haulout.dev/request", "reboot"}}}}}});
      break;
    case Deed::power_cycle:
      rebooted_by_hand_.insert(name);
      machine.power_cycle();
      break;
    case Deed::kill_agent: machine.kill_agent(); break;
    case Deed::delete_pod: delete_some_pod(incident.number); break;
    case Deed::delete_turn:
      for (const Json& lease : cluster.all("leases"))
        if (sim::text(lease, "/spec/holderIdentity").starts_with(name + "/"))
          checks.by_a_person([&] { cluster.remove("leases", sim::ns_of(lease), sim::name_of(lease)); });
      break;
    case Deed::change_limit:
      limit = incident.number;
      limit_percent = 0;
      break;
    case Deed::replace_machine: checks.by_a_person([&] { machine.replace(); }); break;
    case Deed::register_anew:
      if (machine.powered()) checks.by_a_person([&] { cluster.replace_node(name); });
      break;
    case Deed::remove_pool_label:
      cluster.patch("nodes", "", name, {{"metadata", {{"labels", {{"haulout.dev/pool", nullptr}}}}}});
      break;
    case Deed::change_autoscalers: {
      const std::string key(agent::autoscaler_annotations[incident.number % 2]);
      const Json values[] = {nullptr, "false", "true"};
      if (!node(name).is_null())
        checks.by_a_person([&] {
          cluster.patch("nodes", "", name, {{"metadata", {{"annotations", {{key, values[incident.number / 2]}}}}}});
        });
      break;
    }
    case Deed::change_condition: {
      const std::string type(k8s::lifecycle_conditions[incident.number % 4]);
      const char* values[] = {"", "False", "True"};
      if (!node(name).is_null()) checks.by_a_person([&] { change_condition(name, type, values[incident.number / 4]); });
      break;
    }
    case Deed::change_taint:
      if (!node(name).is_null()) checks.by_a_person([&] { change_taint(name, incident.number); });
      break;
    case Deed::switch_waiting_taint:
      if (options.waiting_taint)
        options.waiting_taint.reset();
      else
        options.waiting_taint = agent::WaitingTaint{waiting_taint_key};
      break;
    case Deed::back_end_knows:
      machine.plan().unknown = false;
      machine.want(machine.plan().target);
      break;
    default: break;
  }
}

// Another program writes the condition; with an empty status it removes it.
void SeededFleet::change_condition(const std::string& name, const std::string& type, const std::string& status) {
  Json conditions = sim::at(node(name), "/status/conditions");
  if (!conditions.is_array()) conditions = Json::array();
  std::erase_if(conditions.get_ref<Json::array_t&>(), [&](const Json& each) { return each.value("type", "") == type; });
  if (!status.empty())
    conditions.push_back({{"type", type}, {"status", status}, {"reason", "Storage"}, {"message", "another program"}});
  cluster.patch("nodes", "", name, {{"status", {{"conditions", conditions}}}});
}

// A person removes the taint with the key of the agents' taint, or sets one instead: with the same effect or another.
void SeededFleet::change_taint(const std::string& name, std::size_t number) {
  cluster.untaint(name, waiting_taint_key);
  // With NoSchedule there might be no room for the pods of other nodes, and their budgets would never allow a drain.
  if (number > 0) cluster.taint(name, waiting_taint_key, "PreferNoSchedule");
  if (number > 1) cluster.taint(name, "example.com/other", "PreferNoSchedule");
}

void SeededFleet::delete_some_pod(std::size_t number) {
  const auto pods = cluster.all("pods");
  if (pods.empty()) return;
  const Json& pod = pods[number % pods.size()];
  cluster.delete_gracefully("pods", sim::ns_of(pod), sim::name_of(pod));
}

// Deletes the workload, or removes the toleration from its template. In both cases all its pods are deleted.
void SeededFleet::see_to_workload(const std::string& app, bool it_goes) {
  for (const char* resource : {"deployments", "replicasets", "statefulsets"})
    for (const Json& set : cluster.all(resource)) {
      if (sim::text(set, "/spec/selector/matchLabels/app") != app) continue;
      if (it_goes)
        cluster.remove(resource, sim::ns_of(set), sim::name_of(set));
      else
        cluster.patch(resource, sim::ns_of(set), sim::name_of(set),
                      {{"spec", {{"template", {{"spec", {{"tolerations", nullptr}}}}}}}});
    }
  for (const Json& pod : cluster.all("pods"))
    if (sim::text(pod, "/metadata/labels/app") == app)
      cluster.delete_gracefully("pods", sim::ns_of(pod), sim::name_of(pod));
}

// Returns true if a node that is down, degraded or cordoned counts against the limit of the pool, or if one that has
// rolled its version back holds the roll-out up. Then other nodes may have to wait.
bool SeededFleet::something_holds_turns(const std::string& pool) const {
  if (outsider_holds_ && plan_.outsider->pool == pool) return true;
  return std::any_of(machines.begin(), machines.end(), [&](const auto& each) {
    const auto decoded = k8s::decode<k8s::Node>(node(each->node()).dump());
    const bool counts = pool_of(each->node()) == pool || !decoded || !agent::told_pool(*decoded);
    const bool rolled_back = options.ramp && label(each->node(), "haulout.dev/reason") == "RolledBack";
    return counts &&
           (!each->powered() || state(each->node()) == "degraded" || unschedulable(each->node()) || rolled_back);
  });
}

std::string SeededFleet::pool_of(const std::string& name) const {
  const auto found = std::find_if(plan_.machines.begin(), plan_.machines.end(),
                                  [&](const PlannedMachine& planned) { return planned.name == name; });
  return found == plan_.machines.end() ? "default" : found->pool;
}

// Checks a machine when nothing changes any more, and before anything is repaired.
void SeededFleet::look_at(const PlannedMachine& planned, const Machine& machine) {
  const std::string& name = machine.node();
  const std::string now = state(name), reason = label(name, "haulout.dev/reason");
  const bool well = now == "idle" && !machine.wants_update();
  note(fmt::format("= {} is {} {}", name, now, reason));
  outcome_.updated += well;
  outcome_.degraded += now == "degraded";
  const bool explained = now == "degraded" || now == "pending" || now == "waiting" || now == "verifying";
  // A machine that went down between writing its state and its reason cannot show the reason any more.
  if (explained && reason.empty() && machine.powered())
    checks.violated(fmt::format("P8: {} is {} without a reason", name, now));
  // A machine that is down has no agent to free its slot, whatever its state.
  const bool holds = now == "degraded" || now == "draining" || !machine.powered();
  for (const Json& lease : cluster.all("leases"))
    if (sim::text(lease, "/spec/holderIdentity").starts_with(name + "/") && !holds)
      checks.violated(fmt::format("P6: {} is {} and holds {}", name, now, sim::name_of(lease)));
  const bool waits =
      (now == "waiting" || now == "pending" || now == "draining") && something_holds_turns(pool_of(name));
  // A machine that stays down keeps the state that it had. If agent and kubelet read different boot ids
  // (BootIdForeign), the agent does not update the node.
  const bool refused = now == "pending" && reason == "BootIdForeign";
  const bool broken = (planned.fails() && (now == "degraded" || !machine.powered() || refused)) ||
                      (now == "degraded" && reason == "TooManyReboots");
  const bool given_up = now == "idle" && reason == "RolledBack";
  if (!well && !waits && !broken && !given_up)
    checks.violated(fmt::format("P8: {} has come to rest as {} {}", name, now, reason));
  if (now == "idle" && unschedulable(name) && !checks.cordoned_by_a_person(name))
    checks.violated("P5: " + name + " is idle and cordoned by nobody");
}

void SeededFleet::repair() {
  note("* everything is repaired");
  checks.reboots_per_day = 0;
  paused_.clear();
  pauses_.publish();
  for (const auto& each : machines) {
    const std::string reason = label(each->node(), "haulout.dev/reason");
    each->repair();
    if (checks.cordoned_by_a_person(each->node())) uncordon(each->node());
    if (reason == "RolledBack") each->power_cycle();
    // The agent does not know which taints a Node had before somebody else rebooted the machine.
    if (reason == "ConditionNotMet" && rebooted_by_hand_.contains(each->node()))
      cluster.untaint(each->node(), old_readiness_taint);
    if (reason == "RebootFailed" || reason == "RebootLoop")
      cluster.patch("nodes", "", each->node(), {{"metadata", {{"annotations", {{"haulout.dev/request", "reboot"}}}}}});
  }
}

void SeededFleet::look_at_the_end() {
  if (!outsider_done_)
    checks.violated("the end: the machine outside of the cluster has not got and given back its slot");
  for (const auto& each : machines) {
    const std::string& name = each->node();
    const std::string now = state(name), reason = label(name, "haulout.dev/reason");
    if (now != "idle" || each->wants_update() || !each->powered())
      checks.violated(fmt::format("the end: {} is {} {} at version {}", name, now, reason, each->version()));
    if (unschedulable(name)) checks.violated("the end: " + name + " is cordoned");
    if (each->shows_ready()) checks.violated("the end: " + name + " shows ready");
    const auto decoded = k8s::decode<k8s::Node>(node(name).dump());
    if (!decoded || drain::mark_of(*decoded)) checks.violated("the end: " + name + " carries the mark of a cordon");
    for (const k8s::NodeCondition& condition : decoded ? decoded->conditions : std::vector<k8s::NodeCondition>())
      if (agent::is_own(condition)) checks.violated("the end: " + name + " has the condition " + condition.type);
    const bool marked = !sim::annotation(node(name), "haulout.dev/waiting-taint").empty();
    const Json taints = sim::at(node(name), "/spec/taints");
    // The taints of people have no time.
    const bool tainted = std::any_of(taints.begin(), taints.end(), [](const Json& taint) {
      return taint.at("key") == waiting_taint_key && taint.contains("timeAdded");
    });
    if (marked || tainted) checks.violated("the end: " + name + " has the taint of a node that waits, or its mark");
    if (!sim::annotation(node(name), "haulout.dev/held-autoscalers").empty())
      checks.violated("the end: autoscalers are still asked to leave " + name + " alone");
  }
  for (const Json& lease : cluster.all("leases"))
    checks.violated("the end: " + sim::name_of(lease) + " is held by " + sim::text(lease, "/spec/holderIdentity"));
  for (const Json& pod : cluster.all("pods")) {
    if (sim::terminating(pod)) continue;
    if (!sim::annotation(pod, "haulout.dev/surged").empty())
      checks.violated("the end: " + sim::name_of(pod) + " carries the mark of a surge");
    // Only the pods of workloads have this label.
    const bool of_workload = sim::label(pod, "app").has_value() && !sim::is_mirror(pod) && !sim::pod_finished(pod);
    if (of_workload && sim::controller_of(pod).is_null()) checks.violated("the end: nobody owns " + sim::name_of(pod));
  }
}

SeededOutcome play_seed(std::uint64_t seed, bool traces_requests, unsigned generation) {
  return SeededFleet(plan_fleet(seed, generation), traces_requests).play();
}

}  // namespace haulout::fleet
