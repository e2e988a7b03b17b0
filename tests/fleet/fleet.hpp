// Fixture for tests: a fleet of agents on the simulated cluster in virtual time, with invariants that are checked at
// every step. No I/O. Owns the cluster, the machines and the checks.
#pragma once

#include <gmock/gmock.h>

#include <set>

#include "retry/task_group.hpp"
#include "tests/fleet/counting_clock.hpp"
#include "tests/fleet/fleet_checks.hpp"
#include "tests/scenario/scenario.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::fleet {

using Json = sim::Json;
using nlohmann::literals::operator""_json_pointer;
using scenario::a_budget;
using scenario::a_node;
using scenario::a_pod;
using scenario::a_workload;
using scenario::PodSpec;

class Fleet : public haulout::testing::VirtualTimeTest {
 protected:
  Fleet();

  Machine& machine(const std::string& name, MachinePlan plan = {});
  void add(Json object);
  // Runs until all planned actions have happened and every machine is at rest, then one minute more. Fails the test if
  // an invariant was violated at any time, or if the fleet is not at rest after `limit`.
  void run_fleet(Duration limit = std::chrono::hours(6));
  // Like run_fleet(), but runs for a fixed time and accepts any final state.
  void run_for(Duration time);
  // Runs the fleet, with `to_rest` only until it is at rest. Collects violations of invariants in `checks`, and does
  // not fail the test.
  void run_all(Duration limit, bool to_rest);
  void note(const std::string& line);
  // A person's actions. The checks allow a person more than an agent.
  void cordon(const std::string& node);
  void uncordon(const std::string& node);
  std::size_t limit_now(std::size_t nodes) const;
  void after(Duration delay, std::function<void()> action);

  // Returns true if all agents are idle or degraded and all machines are up. Exceptions: a machine whose plan has
  // `stays_down`, and an agent in the state `unknown` whose plan has `unknown`.
  bool at_rest() const;
  Json node(const std::string& name) const { return cluster.get("nodes", "", name); }
  std::string label(const std::string& node_name, const std::string& key) const;
  std::string state(const std::string& node_name) const { return label(node_name, "haulout.dev/state"); }
  bool unschedulable(const std::string& name) const { return sim::flag(node(name), "/spec/unschedulable"); }
  std::size_t slots_held() const { return cluster.all("leases").size(); }
  std::vector<std::string> states_of(const std::string& node_name) const;
  // Number of requests that the API server has received, whatever it answered.
  std::size_t evictions() const;
  std::size_t patches_of_nodes() const;
  // All lines that were noted in this run, for messages of failures.
  std::string story() const;
  void expect_updated(const Machine& machine) const;

  SeededRng world_rng{1};
  SeededRng rng{2};
  sim::TestCluster cluster{context.get_executor(), clock, world_rng};
  CountingClock agents_clock{clock};  // used by all agents
  agent::AgentOptions options;
  agent::LeaseSlotsOptions slots;
  // Creates the gates of each machine. If empty, all gates are open.
  std::function<std::unique_ptr<agent::GateKeeper>(k8s::Client&, const std::string& node)> gates;
  std::size_t limit = 1;
  unsigned limit_percent = 0;  // used instead of `limit` if it is not 0
  std::function<http::Transport*()> way = [] { return nullptr; };
  std::function<std::unique_ptr<agent::Slots>(agent::Slots&)> decorate_slots;
  std::vector<std::unique_ptr<Machine>> machines;
  std::vector<std::string> lines;
  FleetChecks checks{cluster, clock, options.drain.policy, [this](std::size_t nodes) { return limit_now(nodes); }};

 private:
  boost::asio::awaitable<void> watch_over(Duration limit, bool to_rest);
  scenario::Recorder drains_;
  std::vector<std::pair<Duration, std::function<void()>>> later_;
};

}  // namespace haulout::fleet
