// A fleet of agents on the simulated cluster in virtual time, and what must hold at every step of it.
#pragma once

#include <gmock/gmock.h>

#include <set>

#include "retry/task_group.hpp"
#include "tests/fleet/machine.hpp"
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
  void after(Duration delay, std::function<void()> action);

  // All agents are idle or degraded, all machines up.
  bool at_rest() const;
  Json node(const std::string& name) const { return cluster.get("nodes", "", name); }
  std::string label(const std::string& node_name, const std::string& key) const;
  std::string state(const std::string& node_name) const { return label(node_name, "haulout.dev/state"); }
  bool unschedulable(const std::string& name) const {
    return node(name).value("/spec/unschedulable"_json_pointer, false);
  }
  std::size_t slots_held() const { return cluster.all("leases").size(); }
  std::vector<std::string> states_of(const std::string& node_name) const;
  // Everything that the story of this run was, for failures.
  std::string story() const;
  void expect_updated(const Machine& machine) const;

  SeededRng world_rng{1};
  SeededRng rng{2};
  sim::Cluster cluster{context.get_executor(), clock, world_rng};
  agent::AgentOptions options;
  agent::LeaseSlotsOptions slots;
  // The gates of every machine; without them all are open.
  std::function<std::unique_ptr<agent::GateKeeper>(k8s::Client&, const std::string& node)> gates;
  std::size_t limit = 1;
  std::vector<std::unique_ptr<Machine>> machines;
  std::vector<std::string> violations;
  std::vector<std::string> lines;

 private:
  boost::asio::awaitable<void> watch_over(Duration limit, bool to_rest);
  void run_all(Duration limit, bool to_rest);
  void going_down(Machine& machine);
  void see(const sim::Change& change);

  scenario::Recorder told_;
  std::vector<std::pair<Duration, std::function<void()>>> later_;
  std::map<std::string, std::string> state_of_;
  std::vector<std::pair<std::string, std::string>> states_;
};

}  // namespace haulout::fleet
