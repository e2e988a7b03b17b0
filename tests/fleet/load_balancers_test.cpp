// A node is excluded from external load balancers before its pods are evicted, and is included again when it takes
// pods.
#include "drain/cordon.hpp"
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

constexpr const char* exclude = "node.kubernetes.io/exclude-from-external-load-balancers";

struct LoadBalancers : Fleet {
  LoadBalancers() {
    cluster.on_change([this](const sim::Change& change) {
      if (change.key.resource == "nodes" && change.type != sim::ChangeType::deleted && !excluded_at)
        if ((*change.object)["metadata"].value("labels", Json::object()).contains(exclude)) excluded_at = change.time;
      if (change.key.resource == "pods" && change.type != sim::ChangeType::deleted && !evicted_at)
        if ((*change.object)["metadata"].contains("deletionTimestamp")) evicted_at = change.time;
    });
  }
  void web() { add(a_workload("Deployment", "web", 2, {{"terminationGracePeriodSeconds", 5}})); }
  void set_label(const std::string& node_name, const std::string& value) {
    cluster.patch("nodes", "", node_name, {{"metadata", {{"labels", {{exclude, value}}}}}});
  }
  bool excluded(const std::string& node_name) const {
    return node(node_name)["metadata"].value("labels", Json::object()).contains(exclude);
  }
  std::optional<TimePoint> excluded_at, evicted_at;
};

TEST_F(LoadBalancers, AreLeftAloneByDefault) {
  machine("n1");
  web();
  run_fleet();
  EXPECT_FALSE(excluded_at);
}

TEST_F(LoadBalancers, HaveTheirTimeBeforeTheFirstEviction) {
  options.lb_drain_wait = 2min;
  Machine& n1 = machine("n1");
  web();
  after(60s, [&] {
    EXPECT_EQ(label("n1", exclude), "haulout");
    EXPECT_TRUE(unschedulable("n1"));
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "WaitingForLoadBalancers") << story();
  });
  run_fleet();
  expect_updated(n1);
  ASSERT_TRUE(excluded_at && evicted_at);
  EXPECT_GE(*evicted_at - *excluded_at, 2min - 1s);
  EXPECT_LE(*evicted_at - *excluded_at, 2min + 10s);
  EXPECT_FALSE(excluded("n1"));
}

// P5: if another program or a person has excluded a node from load balancers, the agent does not include it again.
TEST_F(LoadBalancers, WhatSomebodyElseExcludedStaysExcluded) {
  options.lb_drain_wait = 1min;
  for (const std::string value : {"", "true"}) {
    const std::string name = "n" + std::to_string(machines.size());
    machine(name);
    set_label(name, value);
  }
  run_fleet();
  for (const auto& each : machines) {
    expect_updated(*each);
    EXPECT_TRUE(excluded(each->node()));
  }
}

TEST_F(LoadBalancers, ADrainThatIsGivenUpBringsTheNodeBack) {
  options.lb_drain_wait = 1min;
  options.drain.timeout = 3min;
  machine("n1");
  PodSpec held;
  held.labels = {{"app", "held"}};
  add(a_pod("held-0", held));
  add(a_budget("held", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
  run_for(6min);
  EXPECT_EQ(state("n1"), "pending") << story();
  EXPECT_TRUE(excluded_at);
  EXPECT_FALSE(excluded("n1"));
}

TEST_F(LoadBalancers, ARebootThatFailsBringsTheNodeBackAndARollbackDoesNot) {
  options.lb_drain_wait = 1min;
  limit = 2;
  machine("n1", {.ignored_reboots = 9});
  machine("n2", {.rolls_back = true});
  run_for(2h);
  EXPECT_EQ(state("n1"), "degraded") << story();
  EXPECT_FALSE(excluded("n1"));
  EXPECT_EQ(state("n2"), "degraded") << story();
  EXPECT_TRUE(unschedulable("n2"));
  EXPECT_TRUE(excluded("n2"));
}

// P7: an agent that restarts during the wait knows when the wait began, and includes the node again at the end.
TEST_F(LoadBalancers, ARestartedAgentNeitherForgetsNorWaitsTwice) {
  options.lb_drain_wait = 4min;
  Machine& n1 = machine("n1");
  web();
  for (const Duration when : {60s, 120s, 180s}) after(when, [&] { n1.kill_agent(); });
  run_fleet();
  expect_updated(n1);
  ASSERT_TRUE(excluded_at && evicted_at);
  EXPECT_GE(*evicted_at - *excluded_at, 4min - 1s);
  EXPECT_LE(*evicted_at - *excluded_at, 4min + 30s);
  EXPECT_FALSE(excluded("n1"));
}

// The cordon has the mark of another run. That mark does not show when this agent began to wait, so it waits the full
// time again.
TEST_F(LoadBalancers, ARestartedAgentWaitsAnewWhereTheCordonIsAnothers) {
  options.lb_drain_wait = 4min;
  Machine& n1 = machine("n1");
  web();
  after(2min, [&] {
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "WaitingForLoadBalancers") << story();
    n1.kill_agent();
    const drain::CordonMark theirs{"another-run", "ann@desk", clock.wall_now() - 1h};
    cluster.patch("nodes", "", "n1",
                  {{"metadata", {{"annotations", {{"haulout.dev/cordon", drain::encode_mark(theirs)}}}}}});
  });
  run_for(15min);
  ASSERT_TRUE(excluded_at && evicted_at) << story();
  EXPECT_GE(*evicted_at - *excluded_at, 6min - 5s) << story();
}

// The label is left from an agent that excluded the node. Since then the option was switched off, or the agent was
// installed again.
TEST_F(LoadBalancers, AForgottenExclusionOfOurOwnIsTakenBack) {
  machine("n1", {.target = ""});
  set_label("n1", "haulout");
  run_fleet(30min);
  EXPECT_FALSE(excluded("n1"));
}

// The response to the agent's write shows that the label was removed. The agent must not write again although the watch
// delivers nothing for minutes.
TEST_F(LoadBalancers, TheNodeIsGivenBackWithOneWriteWhereTheWatchFallsSilent) {
  machine("n1", {.target = ""});
  set_label("n1", "haulout");
  bool silenced = false;
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource != "nodes" || silenced || excluded("n1")) return;
    silenced = true;
    cluster.silence_watches();
  });
  run_for(10min);
  EXPECT_FALSE(excluded("n1"));
  EXPECT_EQ(patches_of_nodes(), 2u) << "one for the labels that tell the state, one for this\n" << story();
}

}  // namespace
}  // namespace haulout::fleet
