// Machines with the real gates of a node, and a Prometheus whose answers the test decides. No I/O.
#pragma once

#include "agent/gates/node_gates.hpp"
#include "tests/agent/gates/fake_prometheus.hpp"
#include "tests/agent/gates/gates_support.hpp"
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {

struct GatedFleet : Fleet {
  // Gives each machine the real gates.
  GatedFleet() {
    gates = [this](k8s::Client& client, const std::string& name) {
      agent::NodeGatesOptions own = joined;
      own.node = name;
      return std::make_unique<agent::NodeGates>(client, rng, &prometheus, own);
    };
  }

  // Adds a pod that no drain can evict before release_pod().
  void held_pod() {
    PodSpec held;
    held.labels = {{"app", "held"}};
    add(a_pod("held-0", held));
    add(a_budget("held", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
  }
  void release_pod() { cluster.remove("poddisruptionbudgets", "shop", "held"); }
  void annotate(const std::string& key, const Json& value) {
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{key, value}}}}}});
  }
  void request() { annotate("haulout.dev/request", "reboot"); }
  void pause_cluster(const std::string& reason) {
    add({{"apiVersion", "v1"},
         {"kind", "ConfigMap"},
         {"metadata", {{"name", "haulout"}, {"namespace", "haulout"}}},
         {"data", {{"pause", Json{{"reason", reason}}.dump()}}}});
  }
  void expect_given_up(const std::string& reason) {
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), reason);
    EXPECT_FALSE(unschedulable("n1"));
    EXPECT_EQ(slots_held(), 0u);
  }
  std::string message() const { return node("n1")["metadata"]["annotations"].value("haulout.dev/message", ""); }

  agent::NodeGatesOptions joined;
  agent::FakePrometheus prometheus;
};

}  // namespace haulout::fleet
