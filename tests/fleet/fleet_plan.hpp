// A fleet, its workloads, what befalls it and how its wires misbehave, all from one seed. Pure: nothing happens until
// it is played.
//
// Whatever goes wrong has ended `healed_after` the start; machines that do not work stay so until a person repairs
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/config/option.hpp"
#include "agent/gates/reboot_brake.hpp"
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
  // Of the third generation.
  remove_pool_label,
  // Of the fourth: what its owner does about pods that come back whatever is done.
  remove_workload,
  remove_toleration,
};
std::string_view to_string(Deed deed);

struct Incident {
  Duration after{};
  Deed deed = Deed::cordon;
  std::string node{};  // or the name of a budget, or of a workload
  std::size_t number = 0;
  Duration lasts{};
};

// Since the third generation: how the machines of a fleet are told which pool they are in.
enum class Pools { one, by_name, by_label, by_role };

struct PlannedMachine {
  std::string name;
  std::string pool = "default";
  MachinePlan plan;
  std::vector<CrashPoint> crashes;
  // It is left to somebody else to reboot it, who looks at the ready file so often.
  Duration somebody_looks = std::chrono::seconds(20);
  // What it ends as before anybody repairs it: not the target version, and not idle.
  bool fails() const;
};

// Fleets of an earlier generation stay what they were: seeds that once found something are played in theirs.
//   2  machines whose boot id stays the same, kubelets that tell of a boot late, and a limit of reboots per day
//   3  several pools, and people who work on nodes that they have cordoned
//   4  pods that come back to their node whatever is done, and stay or are waited for
inline constexpr unsigned newest_fleet_generation = 4;

struct FleetPlan {
  std::uint64_t seed = 0;
  std::size_t reboots_per_day = 0;  // 0: no limit
  Pools pools = Pools::one;
  // What agents do with a node that a person has cordoned.
  agent::CordonedNodes cordoned_nodes = agent::CordonedNodes::update;
  // What agents do with pods that come back to a cordoned node, and whose these are; empty: there are none.
  drain::Treatment pinned = drain::Treatment::park;
  std::string pinned_app;
  std::size_t limit = 1;
  unsigned limit_percent = 0;
  Duration drain_timeout{};  // 0: none
  Duration soak{};
  sim::Timing timing;
  std::vector<PlannedMachine> machines;
  std::vector<sim::Json> objects;
  std::vector<Incident> incidents;
  std::vector<sim::FaultRule> faults;  // times relative to TimePoint{}
  Duration healed_after{};

  std::string setting() const;  // in one line
};

FleetPlan plan_fleet(std::uint64_t seed, unsigned generation = newest_fleet_generation);

}  // namespace haulout::fleet
