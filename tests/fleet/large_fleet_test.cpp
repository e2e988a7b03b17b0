// Measures what all agents of a large fleet together ask of the API server: when they start, while nothing happens,
// when an update comes for all nodes at the same moment, and while the nodes are updated. In virtual time, on the
// simulated cluster, with the heartbeats of the kubelets.
//
// Prints a table. HAULOUT_FLEET_NODES (100) is the number of nodes; `./dev bench` runs 2,000.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "agent/gates/node_gates.hpp"
#include "retry/task_group.hpp"
#include "tests/fleet/machine.hpp"
#include "tests/fleet/meter.hpp"
#include "tests/scenario/scenario.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::fleet {
namespace {
namespace asio = boost::asio;
using namespace std::chrono_literals;
using sim::Json;

// Five percent of the nodes may be unavailable at the same time.
constexpr std::size_t nodes_for_a_slot = 20;
constexpr std::size_t pods_on_a_node = 2;
constexpr std::size_t nodes_for_a_workload = 10;
// A kubelet writes the status of its Node at least this often.
constexpr Duration heartbeat = 5min;

std::size_t size_of_fleet() {
  const char* text = std::getenv("HAULOUT_FLEET_NODES");
  return text ? std::strtoul(text, nullptr, 10) : 100;
}

class Silent final : public drain::DrainObserver, public MachineObserver {
 public:
  void on_event(const drain::Event&) override {}
};

class LargeFleet : public haulout::testing::VirtualTimeTest {
 protected:
  LargeFleet() {
    add({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "haulout"}}}});
    agent::LeaseSlotsOptions slots;
    slots.limit = [](std::size_t nodes) { return std::max<std::size_t>(1, nodes / nodes_for_a_slot); };
    slots.cluster_nodes = size;
    agent::AgentOptions options;
    options.drain.review_access = false;
    options.spread = agent::spread_of(size);
    options.pool = [](const k8s::Node&) { return std::string("default"); };
    for (std::size_t i = 0; i < size; ++i) {
      const std::string name = fmt::format("n{:04}", i);
      MachinePlan plan;
      plan.target.clear();
      machines.push_back(std::make_unique<Machine>(
          name, plan,
          Machine::Surroundings{cluster, clock, rng, context.get_executor(), nobody, nobody, slots, options,
                                [this](k8s::Client& client, const std::string& node) {
                                  agent::NodeGatesOptions gates;
                                  gates.node = node;
                                  return std::make_unique<agent::NodeGates>(client, rng, nullptr, gates);
                                },
                                [](const std::string&) {}, &meter}));
      Json node = scenario::a_node(name);
      node["status"]["nodeInfo"]["bootID"] = machines.back()->kubelet_boot_id();
      add(std::move(node));
    }
    for (std::size_t i = 0; i < size; i += nodes_for_a_workload) {
      const std::string name = fmt::format("app-{}", i);
      add(scenario::a_workload("Deployment", name, pods_on_a_node * nodes_for_a_workload, Json::object()));
      add(scenario::a_budget(name, {{"maxUnavailable", "20%"}, {"selector", {{"matchLabels", {{"app", name}}}}}}));
    }
  }

  void add(const Json& object) {
    if (const auto loaded = cluster.load(object.dump()); !loaded) throw std::runtime_error(loaded.error().message());
  }

  // Each kubelet writes its Node now and then. The writes of all of them are spread over the interval.
  asio::awaitable<void> kubelets() {
    for (int round = 0;; ++round)
      for (const auto& machine : machines) {
        co_await clock.sleep_until(clock.now() + heartbeat / size);
        cluster.patch("nodes", "", machine->node(),
                      {{"metadata", {{"annotations", {{"test/heartbeat", std::to_string(round)}}}}}});
      }
  }

  bool all(const std::string& state, const std::string& version) const {
    return std::ranges::all_of(machines, [&](const auto& machine) {
      return to_string(machine->status().state) == state && machine->version() == version;
    });
  }
  asio::awaitable<void> until_all_are_idle(const std::string& version, Duration limit) {
    for (const TimePoint end = clock.now() + limit; !all("idle", version) && clock.now() < end;)
      co_await clock.sleep_until(clock.now() + 5s);
    EXPECT_TRUE(all("idle", version)) << "after the time limit";
  }

  // Prints what has been requested since the last call, and returns it.
  Meter::Counts row(const std::string& what) {
    const Meter::Counts counts = meter.counts();
    const double minutes = std::chrono::duration<double, std::ratio<60>>(clock.now() - since).count();
    std::cout << fmt::format("| {} | {:.0f} | {} | {:.1f} | {} | {} | {:.1f} MB | {} |\n", what, minutes,
                             counts.requests, static_cast<double>(counts.requests) / static_cast<double>(size),
                             counts.most_in_a_second(), lists(counts), static_cast<double>(counts.bytes) / 1e6,
                             meter.open_watches());
    if (std::getenv("HAULOUT_FLEET_KINDS"))
      for (const auto& [kind, number] : counts.kinds) std::cout << "    " << number << " " << kind << "\n";
    std::cout.flush();  // a person may wait for the next row
    since = clock.now();
    meter.reset();
    return counts;
  }
  static std::size_t lists(const Meter::Counts& counts) {
    const auto found = counts.kinds.find("list nodes");
    return found == counts.kinds.end() ? 0 : found->second;
  }

  asio::awaitable<void> story() {
    std::cout << fmt::format("{} nodes, {} slots\n", size, std::max<std::size_t>(1, size / nodes_for_a_slot));
    std::cout << "| what happens | minutes | requests | for each agent | maximum in one second | lists of all Nodes | "
                 "sent by "
                 "the server | open watches |\n|---|---:|---:|---:|---:|---:|---:|---:|\n";
    co_await until_all_are_idle("1.0", 10min);
    const auto started = row("all agents start");
    EXPECT_LE(started.requests, 8 * size);
    co_await clock.sleep_until(clock.now() + 30min);
    const auto idle = row("nothing");
    EXPECT_LE(idle.requests, size * 30 / 2) << "an idle agent sends at most 0.5 requests a minute";
    EXPECT_EQ(lists(idle), 0u);
    for (const auto& machine : machines) machine->want("1.1");
    co_await clock.sleep_until(clock.now() + 1min);
    const auto wanted = row("an update comes for all nodes");
    const std::size_t slots = std::max<std::size_t>(1, size / nodes_for_a_slot);
    // A small cluster spreads its requests over little more than a second.
    EXPECT_LE(wanted.most_in_a_second(), (size < 500 ? 11 : 5) * size);
    EXPECT_LE(lists(wanted), 4 * slots + 40) << "the number of lists grows with the slots, not with the agents";
    co_await until_all_are_idle("1.1", 48h);
    const auto updated = row("until all nodes are updated");
    EXPECT_LE(updated.requests, 150 * size);
    EXPECT_LE(lists(updated), 10 * size);
  }

  const std::size_t size = size_of_fleet();
  SeededRng world_rng{1};
  SeededRng rng{2};
  sim::TestCluster cluster{context.get_executor(), clock, world_rng};
  Meter meter{cluster.api(), clock};
  Silent nobody;
  std::vector<std::unique_ptr<Machine>> machines;
  TimePoint since = clock.now();
};

TEST_F(LargeFleet, AsksLittleOfTheApiServer) {
  run(with_task_group([this](TaskGroup& group) {
    group.spawn(cluster.run());
    group.spawn(kubelets());
    for (const auto& machine : machines) group.spawn(machine->live());
    return story();
  }));
}

}  // namespace
}  // namespace haulout::fleet
