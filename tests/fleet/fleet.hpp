// A fleet of agents on the simulated cluster in virtual time, and what must hold at every step of it.
#pragma once

#include <gmock/gmock.h>

#include <set>

#include "retry/task_group.hpp"
#include "tests/fleet/counting_clock.hpp"
#include "tests/fleet/fleet_checks.hpp"
#include "tests/scenario/scenario.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::fleet {

using Json = nlohmann::json;
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
  // Runs until everything that is to happen has happened and every machine has come to rest, then a moment longer;
  // checks the invariants all the way.
  void run_fleet(Duration limit = std::chrono::hours(6));
  // The same for a time, whatever state it ends in.
  void run_for(Duration time);
  // Only collects what was violated.
  void run_all(Duration limit, bool to_rest);
  void note(const std::string& line);
  // What an agent may not, a person may.
  void cordon(const std::string& node);
  void uncordon(const std::string& node);
  std::size_t limit_now(std::size_t nodes) const;
  void after(Duration delay, std::function<void()> action);

  // All agents are idle or degraded, all machines up.
  bool at_rest() const;
  Json node(const std::string& name) const { return cluster.get("nodes", "", name); }
  std::string label(const std::string& node_name, const std::string& key) const;
  std::string state(const std::string& node_name) const { return label(node_name, "haulout.dev/state"); }
  bool unschedulable(const std::string& name) const { return sim::flag(node(name), "/spec/unschedulable"); }
  std::size_t slots_held() const { return cluster.all("leases").size(); }
  std::vector<std::string> states_of(const std::string& node_name) const;
  // Requests that the API server has seen, whatever it answered: evictions, patches of Nodes.
  std::size_t evictions() const;
  std::size_t patches_of_nodes() const;
  // Everything that the story of this run was, for failures.
  std::string story() const;
  void expect_updated(const Machine& machine) const;

  SeededRng world_rng{1};
  SeededRng rng{2};
  sim::Cluster cluster{context.get_executor(), clock, world_rng};
  CountingClock agents_clock{clock};  // of all agents
  agent::AgentOptions options;
  agent::LeaseSlotsOptions slots;
  // The gates of every machine; without them all are open.
  std::function<std::unique_ptr<agent::GateKeeper>(k8s::Client&, const std::string& node)> gates;
  std::size_t limit = 1;
  unsigned limit_percent = 0;  // instead, when not 0
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
