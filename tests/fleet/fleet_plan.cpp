#include "tests/fleet/fleet_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tests/scenario/scenario.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using scenario::a_budget;
using scenario::a_pod;
using scenario::a_workload;
using sim::FaultKind;
using sim::Json;

// Makes the plan of a seed in generations (newest_fleet_generation). Each generation adds to the one before with a
// random source of its own, so that a seed keeps what it had in earlier generations.
class Planner {
 public:
  explicit Planner(std::uint64_t seed) : rng_(seed * 0x9e3779b97f4a7c15u + 7) { plan_.seed = seed; }

  FleetPlan run() {
    settings();
    for (std::uint64_t i = pick(2, 6); i > 0; --i) machine(fmt::format("n{}", plan_.machines.size() + 1));
    plan_.limit = at_most(plan_.limit);
    for (std::uint64_t i = pick(1, 4); i > 0; --i) workload(fmt::format("app{}", i));
    if (rng_.chance(60)) plan_.objects.push_back(a_workload("DaemonSet", "watcher", 0, Json::object(), {}, "watch"));
    if (rng_.chance(40)) static_and_finished_pods();
    if (rng_.chance(75)) people();
    if (rng_.chance(60)) crashes();
    if (rng_.chance(60)) misfortune();
    return std::move(plan_);
  }

  // Generation 3: several pools, and people who cordon nodes.
  static FleetPlan with_pools(FleetPlan plan) {
    Planner planner(plan.seed);
    planner.rng_ = SeededRng(plan.seed * 0x9e3779b97f4a7c15u + 13);
    planner.plan_ = std::move(plan);
    if (planner.rng_.chance(40)) planner.several_pools();
    if (planner.rng_.chance(70)) planner.people_at_work();
    return std::move(planner.plan_);
  }

  // Generation 4: pods that come back. It changes one thing of generation 3: one machine may lose its reboot methods,
  // so that another program has to reboot it.
  static FleetPlan with_pinned_pods(FleetPlan plan) {
    Planner planner(plan.seed);
    planner.rng_ = SeededRng(plan.seed * 0x9e3779b97f4a7c15u + 17);
    planner.plan_ = std::move(plan);
    if (planner.rng_.chance(30)) planner.pinned_pods();
    return std::move(planner.plan_);
  }

 private:
  std::uint64_t pick(std::uint64_t low, std::uint64_t high) { return rng_.between(low, high); }
  Duration time(Duration shortest, Duration longest) { return rng_.between(shortest, longest); }
  // If all nodes were unavailable at once, there would be no capacity for the pods that the budgets protect.
  std::size_t at_most(std::size_t limit) const { return std::min(limit, plan_.machines.size() - 1); }
  const std::string& some_node() { return plan_.machines[pick(0, plan_.machines.size() - 1)].name; }
  // Most incidents fall into the first six minutes, in which most machines are updated.
  Duration moment() {
    const Duration when = rng_.chance(70) ? time(100ms, 6min) : time(100ms, 40min);
    plan_.healed_after = std::max(plan_.healed_after, when);
    return when;
  }
  void incident(Incident what) {
    plan_.healed_after = std::max(plan_.healed_after, what.after + what.lasts);
    plan_.incidents.push_back(std::move(what));
  }

  void settings() {
    plan_.limit = pick(1, 3);
    if (rng_.chance(25)) plan_.limit_percent = static_cast<unsigned>(pick(1, 3)) * 20;
    if (rng_.chance(30)) plan_.drain_timeout = time(6min, 20min);
    if (rng_.chance(30)) plan_.soak = time(1s, 3min);
    plan_.timing.pod_start = time(200ms, 8s);
    plan_.timing.controller_lag = time(5ms, 500ms);
    plan_.timing.scheduler_lag = time(5ms, 500ms);
    plan_.timing.disruption_lag = time(5ms, 200ms);
  }

  void machine(std::string name) {
    PlannedMachine made;
    made.name = std::move(name);
    MachinePlan& plan = made.plan;
    plan.down = time(5s, 4min);
    plan.agent_starts = time(500ms, 30s);
    if (rng_.chance(12)) plan.target.clear();
    switch (pick(0, 15)) {
      case 0: plan.refused_reboots = static_cast<unsigned>(pick(1, 3)); break;
      case 1: plan.ignored_reboots = static_cast<unsigned>(pick(1, 3)); break;
      case 2: plan.rolls_back = true; break;
      case 3: plan.stays_down = true; break;
      case 4: plan.still_wanted = rng_.chance(50); break;
      case 5: plan.late_by = time(1s, 30min); break;
      case 6: plan.methods.resize(1); break;
      case 7: plan.methods.clear(); break;
      case 8:
        plan.unknown = true;
        incident({.after = moment(), .deed = Deed::back_end_knows, .node = made.name});
        break;
      default: break;
    }
    made.somebody_looks = time(1s, 60s);
    plan_.machines.push_back(std::move(made));
  }

  void workload(const std::string& app) {
    const auto replicas = static_cast<int>(pick(1, 6));
    const auto grace = static_cast<std::int64_t>(pick(0, 40));
    const char* kind = rng_.chance(30) ? "StatefulSet" : "Deployment";
    plan_.objects.push_back(a_workload(kind, app, replicas, {{"terminationGracePeriodSeconds", grace}}));
    if (!rng_.chance(60)) return;
    const bool closed = replicas < 2 || rng_.chance(20);
    const auto needed = closed ? replicas : static_cast<int>(pick(1, static_cast<std::uint64_t>(replicas) - 1));
    plan_.objects.push_back(a_budget(app, {{"minAvailable", needed}, {"selector", {{"matchLabels", {{"app", app}}}}}}));
    if (closed) incident({.after = moment(), .deed = Deed::open_budget, .node = app});
  }

  void static_and_finished_pods() {
    scenario::PodSpec mirror;
    mirror.owner_kind.clear();
    mirror.annotations = {{"kubernetes.io/config.mirror", "abc"}};
    plan_.objects.push_back(a_pod("etcd-n1", mirror));
    scenario::PodSpec finished;
    finished.phase = "Succeeded";
    finished.node = "n2";
    plan_.objects.push_back(a_pod("job-1", finished));
  }

  void people() {
    static constexpr Deed deeds[] = {Deed::cordon,          Deed::uncordon,     Deed::pause,       Deed::request_reboot,
                                     Deed::power_cycle,     Deed::delete_pod,   Deed::delete_turn, Deed::change_limit,
                                     Deed::replace_machine, Deed::register_anew};
    for (std::uint64_t i = pick(1, 6); i > 0; --i) {
      Incident what{.after = moment(), .deed = deeds[pick(0, std::size(deeds) - 1)], .node = some_node()};
      what.number = at_most(pick(1, 3));
      if (what.deed == Deed::delete_pod) what.number = pick(0, 30);
      if (what.deed == Deed::pause) {
        what.lasts = time(1s, 10min);
        plan_.incidents.push_back({.after = what.after + what.lasts, .deed = Deed::resume, .node = what.node});
      }
      incident(std::move(what));
    }
  }

  void crashes() {
    for (PlannedMachine& machine : plan_.machines) {
      for (std::uint64_t i = pick(0, 3); i > 0; --i)
        machine.crashes.push_back({.request = pick(1, 150), .after = rng_.chance(50)});
      for (std::uint64_t i = pick(0, 2); i > 0; --i)
        incident({.after = moment(), .deed = Deed::kill_agent, .node = machine.name});
    }
  }

  void misfortune() {
    static constexpr Deed deeds[] = {Deed::restart_server,  Deed::drop_connections, Deed::close_watches,
                                     Deed::silence_watches, Deed::compact,          Deed::throttle};
    for (std::uint64_t i = pick(0, 4); i > 0; --i) {
      Incident what{.after = moment(), .deed = deeds[pick(0, std::size(deeds) - 1)]};
      what.lasts = rng_.chance(10) ? time(1s, 1h) : time(100ms, 1min);
      incident(std::move(what));
    }
    static constexpr FaultKind kinds[] = {
        FaultKind::refuse,   FaultKind::reset_before, FaultKind::reset_after, FaultKind::stall,        FaultKind::slow,
        FaultKind::truncate, FaultKind::html,         FaultKind::throttle,    FaultKind::server_error, FaultKind::cut,
        FaultKind::end,      FaultKind::half_line,    FaultKind::split};
    for (std::uint64_t i = pick(0, 4); i > 0; --i) {
      sim::FaultRule rule;
      rule.fault.kind = kinds[pick(0, std::size(kinds) - 1)];
      rule.fault.delay = time(1ms, 5s);
      rule.fault.code = rng_.chance(50) ? 503 : rng_.chance(50) ? 500 : 504;
      rule.fault.proxy = rng_.chance(30);
      rule.fault.after_pieces = pick(0, 5);
      rule.percent = static_cast<unsigned>(rng_.chance(10) ? pick(50, 100) : pick(1, 25));
      if (rng_.chance(30)) rule.verb = rng_.chance(50) ? "patch" : "list";
      rule.until = TimePoint{} + moment();
      plan_.faults.push_back(rule);
    }
  }

  // All machines of a pool may be unavailable at once. So there is one more node, in a pool of its own, with capacity
  // for the evicted pods.
  void several_pools() {
    static constexpr Pools kinds[] = {Pools::by_name, Pools::by_label, Pools::by_role};
    plan_.pools = kinds[pick(0, std::size(kinds) - 1)];
    const bool by_role = plan_.pools == Pools::by_role;
    for (PlannedMachine& machine : plan_.machines)
      machine.pool = by_role ? (rng_.chance(40) ? "control-plane" : "default") : (rng_.chance(40) ? "db" : "web");
    Json spare = scenario::a_node("spare");
    spare["metadata"]["labels"] = {{"haulout.dev/pool", "none"}, {"team", "none"}};
    plan_.objects.push_back(std::move(spare));
    if (plan_.pools == Pools::by_label) return;
    for (std::uint64_t i = pick(0, 3); i > 0; --i)
      incident({.after = moment(), .deed = Deed::remove_pool_label, .node = some_node()});
  }

  // People cordon a node, work on it for a while and uncordon it.
  void people_at_work() {
    if (rng_.chance(80)) plan_.cordoned_nodes = agent::CordonedNodes::wait;
    for (std::uint64_t i = pick(1, 3); i > 0; --i) {
      const Incident cordon{.after = moment(), .deed = Deed::cordon, .node = some_node()};
      incident({.after = cordon.after + time(1s, 30min), .deed = Deed::uncordon, .node = cordon.node});
      incident(cordon);
    }
  }

  // Adds pods that tolerate the cordon and prefer one node. If the drain waits for such pods, their owner removes the
  // workload or the toleration in the end.
  void pinned_pods() {
    plan_.pinned_app = "pinned";
    PlannedMachine& machine = plan_.machines[pick(0, plan_.machines.size() - 1)];
    const MachinePlan& its = machine.plan;
    // Without reboot methods, another program reboots this machine. Then its node stays in the state `ready` for a
    // while, and the pods come back to a node that was empty.
    const bool plain = !its.same_boot_id && its.refused_reboots + its.ignored_reboots == 0 && its.late_by == 0s;
    if (plain && rng_.chance(40)) machine.plan.methods.clear();
    const Json tolerations = {{{"key", "node.kubernetes.io/unschedulable"}, {"operator", "Exists"}}};
    const auto grace = static_cast<std::int64_t>(pick(0, 40));
    plan_.objects.push_back(a_workload(rng_.chance(50) ? "StatefulSet" : "Deployment", plan_.pinned_app,
                                       static_cast<int>(rng_.chance(70) ? 1 : 2),
                                       {{"terminationGracePeriodSeconds", grace}, {"tolerations", tolerations}},
                                       {{"sim.haulout.dev/prefers-node", machine.name}}));
    if (rng_.chance(50)) {
      plan_.pinned = drain::Treatment::skip;
      return;
    }
    incident({.after = time(5min, 1h),
              .deed = rng_.chance(50) ? Deed::remove_workload : Deed::remove_toleration,
              .node = plan_.pinned_app});
  }

  SeededRng rng_;
  FleetPlan plan_;
};

// Generation 2: a limit of reboots per day, kubelets that report a boot late, and containers, whose boot id stays the
// same.
void add_containers(FleetPlan& plan) {
  SeededRng rng(plan.seed * 0x9e3779b97f4a7c15u + 11);
  plan.reboots_per_day = agent::default_reboots_per_day;
  for (PlannedMachine& machine : plan.machines) {
    MachinePlan& its = machine.plan;
    if (rng.chance(25)) its.kubelet_late = rng.between(1s, 90s);
    // Leaves out machines without reboot methods. Another program reboots those whenever they are `ready`. It cannot
    // see that a machine with an unchanged boot id has rebooted, so it might reboot it again and again.
    if (!rng.chance(12) || its.methods.empty()) continue;
    // Only one fault for each machine. When a person repairs this one, the agent reads another boot id although the
    // machine has not rebooted. If the machine had also ignored a reboot, the agent would take that for the reboot.
    if (its.rolls_back || its.ignored_reboots + its.refused_reboots > 0 || its.late_by > 0s) continue;
    its.same_boot_id = true;
    its.kubelet_knows = rng.chance(30);
    its.start_hidden = !its.kubelet_knows && rng.chance(30);
  }
}

// Generation 5: agents that install package updates. Leaves out machines without reboot methods, which another program
// reboots.
void add_package_updates(FleetPlan& plan) {
  SeededRng rng(plan.seed * 0x9e3779b97f4a7c15u + 23);
  for (PlannedMachine& machine : plan.machines) {
    if (!rng.chance(60) || machine.plan.methods.empty()) continue;
    UpdatesPlan& its = machine.plan.updates;
    its.on = true;
    for (std::uint64_t i = rng.between(std::uint64_t{0}, std::uint64_t{7}); i > 0; --i)
      its.waiting.push_back(fmt::format("package-{} 1.0 to 1.1", i));
    its.need_reboot = rng.chance(70);
    its.takes = rng.between(5s, 10min);
    its.outlives_agent = rng.chance(70);
    its.fails_download = rng.chance(10);
    if (rng.chance(15)) its.failing = static_cast<unsigned>(rng.between(std::uint64_t{1}, std::uint64_t{3}));
    if (rng.chance(40)) machine.plan.target.clear();
  }
}

// Generation 6: agents that write an image, which the next boot runs. They take the place of agents that install
// packages.
void add_images(FleetPlan& plan) {
  SeededRng rng(plan.seed * 0x9e3779b97f4a7c15u + 29);
  for (PlannedMachine& machine : plan.machines) {
    UpdatesPlan& its = machine.plan.updates;
    if (!its.on || !rng.chance(50)) continue;
    its.image = "42.1";
    its.waiting = {"1.0 to 42.1"};
    its.need_reboot = true;
    its.before_drain = rng.chance(60);
    machine.plan.target.clear();  // the machine wants the image only when it is written
  }
}

// Generation 7: nodes that have a taint of node-readiness-controller for a while after each boot, but not longer than
// agents wait for it, and not always from the first moment on; nodes that have another one from before; and people who
// annotate nodes for autoscalers, also in the middle of an update.
void add_readiness(FleetPlan& plan) {
  SeededRng rng(plan.seed * 0x9e3779b97f4a7c15u + 31);
  for (PlannedMachine& machine : plan.machines) {
    if (rng.chance(40)) machine.plan.readiness_takes = rng.between(1s, 9min);
    if (rng.chance(50)) machine.plan.readiness_late = rng.between(100ms, 2min);
    machine.never_quite_ready = rng.chance(20);
    machine.held_by_a_person = rng.chance(20);
    if (rng.chance(30))
      plan.incidents.push_back({.after = rng.between(1s, 6min),
                                .deed = Deed::change_autoscalers,
                                .node = machine.name,
                                .number = static_cast<std::size_t>(rng.between(std::uint64_t{0}, std::uint64_t{5}))});
  }
}

// Generation 8: agents that have pods of Deployments replaced before they evict them.
void add_surge(FleetPlan& plan) {
  SeededRng rng(plan.seed * 0x9e3779b97f4a7c15u + 37);
  if (!rng.chance(60)) return;
  using drain::Surge;
  plan.surge = rng.chance(60) ? Surge::all : rng.chance(50) ? Surge::closed_budget : Surge::single_replica;
  plan.surge_limit = rng.between(30s, 5min);
  for (Json& object : plan.objects)
    if (sim::text(object, "/kind") == "Deployment")
      object["metadata"]["annotations"]["sim.haulout.dev/template-hash"] = "true";
}

// Generation 9: gangs. In some fleets the pods of workloads are members of one, so agents evict them after all others.
// In others, agents wait for the pods of a training run, which has at most one pod on each node and finishes.
void add_gangs(FleetPlan& plan) {
  SeededRng rng(plan.seed * 0x9e3779b97f4a7c15u + 41);
  constexpr const char* label = "jobset.sigs.k8s.io/jobset-name";
  if (rng.chance(35)) return;
  if (rng.chance(50)) {
    for (Json& object : plan.objects)
      if (!sim::at(object, "/spec/template").is_null() && rng.chance(50))
        object["spec"]["template"]["metadata"]["labels"][label] = "serve";
    return;
  }
  plan.gangs = drain::Treatment::park;
  for (const PlannedMachine& machine : plan.machines) {
    if (!rng.chance(60)) continue;
    scenario::PodSpec member;
    member.node = machine.name;
    member.owner_kind = "Job";
    member.owner_api = "batch/v1";
    member.labels = {{label, "train"}};
    const std::string name = "train-" + machine.name;
    plan.objects.push_back(a_pod(name, member));
    const Duration when = rng.between(1s, 15min);
    plan.healed_after = std::max(plan.healed_after, when);
    plan.incidents.push_back({.after = when, .deed = Deed::finish_work, .node = name});
  }
}

// Generation 9: in some fleets, agents evict the pods of a DaemonSet.
void add_daemon_set_evictions(FleetPlan& plan) {
  SeededRng rng(plan.seed * 0x9e3779b97f4a7c15u + 43);
  plan.evicts_daemon_sets = rng.chance(50);
}

// Generation 9: other programs, such as kubectl or a storage operator, that write conditions of the agents' types.
void add_conditions(FleetPlan& plan) {
  SeededRng rng(plan.seed * 0x9e3779b97f4a7c15u + 47);
  for (const PlannedMachine& machine : plan.machines)
    for (int i = 0; i < 3; ++i)
      if (rng.chance(30))
        plan.incidents.push_back(
            {.after = rng.between(1s, 10min),
             .deed = Deed::change_condition,
             .node = machine.name,
             .number = static_cast<std::size_t>(rng.between(std::uint64_t{0}, std::uint64_t{11}))});
}

// Generation 10: agents that roll their version out in waves. Some fleets have a larger limit than before, or the waves
// would hold nobody up.
void add_waves(FleetPlan& plan) {
  SeededRng rng(plan.seed * 0x9e3779b97f4a7c15u + 53);
  if (!rng.chance(60)) return;
  static constexpr const char* ramps[] = {"1", "1,1", "1,2", "2,1,1", "1,34%", "20%,40%"};
  plan.ramp = ramps[rng.between(std::uint64_t{0}, std::size(ramps) - 1)];
  if (rng.chance(60)) {
    plan.limit = plan.machines.size() - 1;
    plan.limit_percent = 0;
  }
}

// Generation 11: agents that taint their Node while it waits for its update, and people who change such taints.
void add_waiting_taints(FleetPlan& plan) {
  SeededRng rng(plan.seed * 0x9e3779b97f4a7c15u + 59);
  plan.waiting_taint = rng.chance(70);
  for (const PlannedMachine& machine : plan.machines)
    for (int i = 0; i < 2; ++i)
      if (rng.chance(30))
        plan.incidents.push_back({.after = rng.between(1s, 10min),
                                  .deed = Deed::change_taint,
                                  .node = machine.name,
                                  .number = static_cast<std::size_t>(rng.between(std::uint64_t{0}, std::uint64_t{2}))});
  if (rng.chance(30))
    plan.incidents.push_back(
        {.after = rng.between(1s, 10min), .deed = Deed::switch_waiting_taint, .node = plan.machines.front().name});
}

// Generation 12: agents whose roll-out halts when so many nodes have failed, with and without waves; and agents that go
// in an order. Some machines lack the label of the order.
void add_order(FleetPlan& plan) {
  SeededRng rng(plan.seed * 0x9e3779b97f4a7c15u + 61);
  if (rng.chance(40)) plan.halt_after = rng.between(std::uint64_t{1}, std::uint64_t{3});
  static constexpr const char* orders[] = {"zone", "label:rank", "asked"};
  if (rng.chance(60)) plan.roll_out_order = orders[rng.between(std::uint64_t{0}, std::size(orders) - 1)];
  static constexpr const char* zones[] = {"", "a", "b", "c"};
  static constexpr const char* ranks[] = {"", "1", "2", "10", "09", "blue", "1st"};
  for (PlannedMachine& machine : plan.machines) {
    machine.zone = zones[rng.between(std::uint64_t{0}, std::size(zones) - 1)];
    machine.rank = ranks[rng.between(std::uint64_t{0}, std::size(ranks) - 1)];
  }
}

// Generation 13: a machine outside of the cluster. Its server has the limit that the agents have at the start.
void add_outsider(FleetPlan& plan) {
  SeededRng rng(plan.seed * 0x9e3779b97f4a7c15u + 67);
  if (!rng.chance(60)) return;
  PlannedOutsider outsider;
  outsider.pool = plan.machines[rng.between(std::uint64_t{0}, plan.machines.size() - 1)].pool;
  outsider.after = rng.between(1s, 20min);
  outsider.holds = rng.between(1min, 15min);
  if (plan.limit_percent == 0) outsider.limit = std::max<std::size_t>(1, plan.limit);
  outsider.servers_die = rng.chance(50);
  plan.outsider = outsider;
}

// Generation 14: agents of a large cluster.
void add_spread(FleetPlan& plan) {
  SeededRng rng(plan.seed * 0x9e3779b97f4a7c15u + 71);
  if (rng.chance(50)) plan.spread = rng.between(1s, 30s);
}

}  // namespace

std::string_view to_string(Deed deed) {
  switch (deed) {
    case Deed::cordon: return "cordon";
    case Deed::uncordon: return "uncordon";
    case Deed::pause: return "pause";
    case Deed::resume: return "resume";
    case Deed::request_reboot: return "request a reboot";
    case Deed::power_cycle: return "power cycle";
    case Deed::kill_agent: return "kill the agent";
    case Deed::delete_pod: return "delete a pod";
    case Deed::delete_turn: return "delete the turn";
    case Deed::change_limit: return "change the limit";
    case Deed::replace_machine: return "replace the machine";
    case Deed::register_anew: return "register anew";
    case Deed::change_autoscalers: return "change the annotations for autoscalers";
    case Deed::change_condition: return "change a condition";
    case Deed::change_taint: return "change a taint";
    case Deed::switch_waiting_taint: return "switch the waiting taint";
    case Deed::back_end_knows: return "the back end knows";
    case Deed::restart_server: return "restart the server";
    case Deed::drop_connections: return "drop connections";
    case Deed::close_watches: return "close watches";
    case Deed::silence_watches: return "silence watches";
    case Deed::compact: return "compact";
    case Deed::throttle: return "throttle";
    case Deed::open_budget: return "open the budget";
    case Deed::remove_pool_label: return "remove the label of the pool";
    case Deed::remove_workload: return "remove the workload";
    case Deed::finish_work: return "finish the work";
    case Deed::remove_toleration: return "remove the toleration";
  }
  return "";
}

bool PlannedMachine::fails() const {
  const std::size_t ways = plan.methods.size();
  return plan.rolls_back || plan.stays_down || plan.still_wanted ||
         (ways > 0 && plan.refused_reboots + plan.ignored_reboots >= ways) || plan.late_by > 9min || plan.same_boot_id;
}

std::string FleetPlan::setting() const {
  std::string text = limit_percent > 0 ? fmt::format("limit {} %", limit_percent) : fmt::format("limit {}", limit);
  if (!ramp.empty()) text += ", waves " + ramp;
  if (halt_after > 0) text += fmt::format(", halts-at-{}", halt_after);
  if (roll_out_order != "any") text += ", order " + roll_out_order;
  if (pools == Pools::by_name) text += ", pools-by-name";
  if (pools == Pools::by_label) text += ", pools-by-label";
  if (pools == Pools::by_role) text += ", pools-by-role";
  if (cordoned_nodes == agent::CordonedNodes::wait) text += ", persons-cordon-waited-for";
  if (!pinned_app.empty()) text += pinned == drain::Treatment::skip ? ", pinned-pods-stay" : ", pinned-pods-waited-for";
  if (evicts_daemon_sets) text += ", evicts-daemon-sets";
  if (surge == drain::Surge::all) text += ", surge-all";
  if (surge == drain::Surge::closed_budget) text += ", surge-closed-budget";
  if (surge == drain::Surge::single_replica) text += ", surge-single-replica";
  if (gangs == drain::Treatment::park) text += ", gangs-waited-for";
  if (waiting_taint) text += ", waiting-taint";
  if (spread > 0s) text += ", spread " + format_duration(std::chrono::floor<std::chrono::seconds>(spread));
  if (outsider) text += outsider->servers_die ? ", outsider-of-dying-servers" : ", outsider";
  for (const PlannedMachine& machine : machines) {
    const MachinePlan& plan = machine.plan;
    text += fmt::format(
        ", {}{}{}{}{}{}{}{}{}{}{}{}{}{}{}", machine.name, pools == Pools::one ? "" : " " + machine.pool,
        plan.target.empty() ? " content" : "", plan.rolls_back ? " rolls-back" : "",
        plan.stays_down ? " stays-down" : "", plan.still_wanted ? " still-wanted" : "",
        plan.methods.empty() ? " by-others" : "",
        plan.refused_reboots ? fmt::format(" refuses-{}", plan.refused_reboots) : "",
        plan.ignored_reboots ? fmt::format(" ignores-{}", plan.ignored_reboots) : "",
        plan.late_by > 0s
            ? fmt::format(" late-{}s", std::chrono::duration_cast<std::chrono::seconds>(plan.late_by).count())
            : "",
        machine.crashes.empty() ? "" : " crashes", plan.unknown ? " unknown" : "",
        !plan.same_boot_id   ? ""
        : plan.kubelet_knows ? " foreign-boot-id"
        : plan.start_hidden  ? " same-boot-id-unseen"
                             : " same-boot-id",
        plan.kubelet_late > 0s ? " kubelet-late" : "",
        !plan.updates.on             ? ""
        : plan.updates.image.empty() ? fmt::format(" updates-{}", plan.updates.waiting.size())
        : plan.updates.before_drain  ? " image-before-drain"
                                     : " image-after-drain");
  }
  for (const Incident& what : incidents) {
    std::string deed(to_string(what.deed));
    std::replace(deed.begin(), deed.end(), ' ', '-');
    text += ", " + deed;
  }
  return text;
}

FleetPlan plan_fleet(std::uint64_t seed, unsigned generation) {
  FleetPlan plan = Planner(seed).run();
  if (generation >= 2) add_containers(plan);
  if (generation >= 3) plan = Planner::with_pools(std::move(plan));
  if (generation >= 4) plan = Planner::with_pinned_pods(std::move(plan));
  if (generation >= 5) add_package_updates(plan);
  if (generation >= 6) add_images(plan);
  if (generation >= 7) add_readiness(plan);
  if (generation >= 8) add_surge(plan);
  if (generation >= 9) add_gangs(plan);
  if (generation >= 9) add_daemon_set_evictions(plan);
  if (generation >= 9) add_conditions(plan);
  if (generation >= 10) add_waves(plan);
  if (generation >= 11) add_waiting_taints(plan);
  if (generation >= 12) add_order(plan);
  if (generation >= 13) add_outsider(plan);
  if (generation >= 14) add_spread(plan);
  return plan;
}

}  // namespace haulout::fleet
