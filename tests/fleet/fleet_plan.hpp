// Plan of a random world from one seed: a fleet, its workloads, the incidents and the faults of its connections. Pure:
// nothing happens until SeededFleet plays the plan.
// All faults of the connections have ended at the time `healed_after` after the start. Machines that do not work stay
// so until a person repairs them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "agent/gates/gate.hpp"
#include "tests/fleet/machine.hpp"
#include "tests/worlds/faults.hpp"

namespace haulout::fleet {

enum class Deed {
  cordon,
  uncordon,
  pause,
  resume,
  request_reboot,
  power_cycle,
  kill_agent,
  delete_pod,
  delete_turn,
  change_limit,
  replace_machine,
  register_anew,
  back_end_knows,
  restart_server,
  drop_connections,
  close_watches,
  silence_watches,
  compact,
  throttle,
  open_budget,
  // Since generation 3 (see newest_fleet_generation).
  remove_pool_label,
  // Since generation 4: what the owner does about pods that come back after every eviction.
  remove_workload,
  remove_toleration,
  // Since generation 7: a person removes or changes an annotation for autoscalers.
  change_autoscalers,
  // Since generation 9: the pod of a training run has finished.
  finish_work,
  // Since generation 9: another program writes or removes a condition of one of the agents' types.
  change_condition,
  // Since generation 11: a person removes the taint of agents, or sets one of the same key; and the administrator
  // switches --waiting-taint on or off, for the agents that start later.
  change_taint,
  switch_waiting_taint,
};
std::string_view to_string(Deed deed);

struct Incident {
  Duration after{};
  Deed deed = Deed::cordon;
  std::string node{};  // or the name of a budget, a workload or a pod
  std::size_t number = 0;
  Duration lasts{};
};

// Since generation 3: how the machines of a fleet learn their pool.
enum class Pools { one, by_name, by_label, by_role };

struct PlannedMachine {
  std::string name;
  std::string pool = "default";
  MachinePlan plan;
  std::vector<CrashPoint> crashes;
  // Since generation 7: a person has annotated the node for Karpenter, and it has had a readiness taint all the time.
  bool held_by_a_person = false;
  bool never_quite_ready = false;
  // Since generation 11: values of the labels by which the roll-out may be ordered; empty: the Node lacks the label.
  std::string zone, rank;
  // If another tool has to reboot the machine: the interval at which that tool checks the ready file.
  Duration somebody_looks = std::chrono::seconds(20);
  // Returns true if the plan lets the machine end without the target version or without being idle, until it is
  // repaired.
  bool fails() const;
};

// A generation is a version of this generator. A new one adds to the fleets of the one before and leaves the fleets of
// all earlier ones unchanged, because each seed that once found a bug is played in its generation.
//   2  machines whose boot id stays the same, kubelets that report a boot late, and a limit of reboots per day
//   3  several pools, and people who work on nodes that they have cordoned
//   4  pods that come back to their node after every eviction, and either stay or are waited for
//   5  machines whose agents install package updates after the drain
//   6  machines whose agents write an image for the next boot, before or after the drain
//   7  nodes that have a taint of node-readiness-controller for a while after each boot, or from before, and people's
//      annotations for autoscalers
//   8  agents that have pods of Deployments replaced before they evict them
//   9  gangs: workloads whose pods run only together, or training runs for which agents wait; agents that evict the
//      pods of a DaemonSet after all others; other programs that write conditions of the same types as agents
//  10  agents that roll their version out in waves
//  11  agents that taint their Node while it waits for its update, and people who change such taints
//  12  agents whose roll-out halts at a number of failed nodes, or goes in an order
//  13  a machine outside of the cluster that gets a slot of a pool from a FleetLock server
//  14  agents that wait for a random time before they ask their gates, as in a large cluster
inline constexpr unsigned newest_fleet_generation = 14;

// The key of the taint of agents since generation 11.
inline constexpr const char* waiting_taint_key = "example.com/update-waits";

// Since generation 13: a machine outside of the cluster that updates itself with a slot of a pool.
struct PlannedOutsider {
  std::string pool;
  Duration after{};          // when it asks for its slot for the first time
  Duration holds{};          // how long it keeps its slot
  std::size_t limit = 1;     // of the server
  bool servers_die = false;  // its servers may be killed while they answer
};

struct FleetPlan {
  std::uint64_t seed = 0;
  std::size_t reboots_per_day = 0;  // 0 disables the limit
  Pools pools = Pools::one;
  // What agents do with a node that a person has cordoned.
  agent::CordonedNodes cordoned_nodes = agent::CordonedNodes::update;
  // What agents do with pods that come back to a cordoned node, and the app of these pods (empty if there are none).
  drain::Treatment pinned = drain::Treatment::park;
  std::string pinned_app;
  std::size_t limit = 1;
  unsigned limit_percent = 0;
  std::string ramp;  // sizes of the waves; empty: none
  std::size_t halt_after = 0;
  std::string roll_out_order = "any";
  Duration drain_timeout{};  // limit of a drain; 0 means no limit
  Duration soak{};
  // Which pods agents have replaced before they evict them, and how long they wait for a replacement.
  drain::Surge surge = drain::Surge::off;
  Duration surge_limit{};
  // What agents do with members of gangs.
  drain::Treatment gangs = drain::Treatment::evict;
  bool evicts_daemon_sets = false;
  // Agents taint their Node while it waits for its update.
  bool waiting_taint = false;
  Duration spread{};  // see AgentOptions::spread
  std::optional<PlannedOutsider> outsider;
  sim::Timing timing;
  std::vector<PlannedMachine> machines;
  std::vector<sim::Json> objects;
  std::vector<Incident> incidents;
  std::vector<sim::FaultRule> faults;  // times are relative to TimePoint{}
  Duration healed_after{};

  std::string setting() const;  // in one line
};

FleetPlan plan_fleet(std::uint64_t seed, unsigned generation = newest_fleet_generation);

}  // namespace haulout::fleet
