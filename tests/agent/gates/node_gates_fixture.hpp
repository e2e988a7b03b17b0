// Fixture with the gates of a node on the simulated cluster. The time is 2026-01-01T00:00:00Z, a Thursday. Owns the
// cluster and the gates.
#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <memory>

#include "agent/gates/node_gates.hpp"
#include "tests/agent/gates/fake_prometheus.hpp"
#include "tests/agent/gates/gates_support.hpp"
#include "tests/scenario/scenario.hpp"

namespace haulout::agent {

struct NodeGatesTest : haulout::testing::VirtualTimeTest {
  NodeGatesTest() {
    add({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "haulout"}}}});
    add(scenario::a_node("n1"));
    options.node = "n1";
    options.own_pool = [this](const k8s::Node&) { return pool; };
    question.node.name = "n1";
    question.pending = {Need::yes, {"kernel"}, "1.1"};
  }

  void add(const scenario::Json& object) { ASSERT_TRUE(cluster.load(object.dump())); }
  void pause(const scenario::Json& data) {
    add({{"apiVersion", "v1"},
         {"kind", "ConfigMap"},
         {"metadata", {{"name", "haulout"}, {"namespace", "haulout"}}},
         {"data", data}});
  }
  static scenario::Json because(const std::string& reason) { return scenario::Json{{"reason", reason}}.dump(); }

  // Runs `story` while the simulated cluster runs.
  void in_the_world(std::function<boost::asio::awaitable<void>()> story) {
    if (!gates) gates = std::make_unique<NodeGates>(client, rng, with_prometheus ? &prometheus : nullptr, options);
    run(with_task_group([&](TaskGroup& group) {
      group.spawn(cluster.run());
      return story();
    }));
  }
  GateAnswer ask(GateQuestion::When when = GateQuestion::When::before_turn, Duration limit = std::chrono::seconds(30)) {
    GateAnswer answer;
    question.when = when;
    in_the_world(
        [&]() -> boost::asio::awaitable<void> { answer = co_await gates->ask(question, clock.now() + limit); });
    return answer;
  }
  // Returns the time from `action` until changed() returns.
  Duration woken_by(std::function<void()> action) {
    Duration took{};
    in_the_world([&]() -> boost::asio::awaitable<void> {
      const TimePoint due = clock.now() + std::chrono::seconds(10);
      cluster.at(due, std::move(action));
      co_await gates->changed();
      took = clock.now() - due;
    });
    return took;
  }
  static const Gate& row(const GateAnswer& answer, const std::string& name) {
    for (const Gate& gate : answer.gates)
      if (gate.name == name) return gate;
    throw std::logic_error("no row " + name);
  }

  SeededRng world_rng{1};
  SeededRng rng{2};
  sim::TestCluster cluster{context.get_executor(), clock, world_rng};
  k8s::Client client{cluster.api(), clock, {.validation = k8s::FieldValidation::strict}};
  FakePrometheus prometheus;
  bool with_prometheus = false;
  NodeGatesOptions options;
  OwnPool pool{"web"};  // current pool of n1
  GateQuestion question;
  std::unique_ptr<NodeGates> gates;
};

}  // namespace haulout::agent
