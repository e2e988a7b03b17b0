// Several pools in one cluster. Each agent gets the name of its pool as an option.
#include "tests/fleet/gated_fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct PoolsByName : GatedFleet {
  PoolsByName() {
    limit_percent = 25;
    gates = [this](k8s::Client& client, const std::string& name) {
      agent::NodeGatesOptions own = joined;
      own.node = name;
      own.own_pool = [pool = checks.pools.at(name)](const k8s::Node&) { return agent::OwnPool{pool}; };
      return std::make_unique<agent::NodeGates>(client, rng, nullptr, own);
    };
  }
  // Six machines in pool web and two in pool db.
  void two_pools() {
    for (const char* name : {"web1", "web2", "web3", "web4", "web5", "web6"}) machine_of("web", name);
    for (const char* name : {"db1", "db2"}) machine_of("db", name);
  }
  Machine& machine_of(const std::string& pool, const std::string& name, MachinePlan plan = {}) {
    slots.grouping.pool = pool;
    options.pool = [pool](const k8s::Node&) { return pool; };
    checks.pools[name] = pool;
    return machine(name, std::move(plan));
  }
};

// P6: each pool has its own percentage, of at least one node: a quarter of the two nodes of db counts as one.
TEST_F(PoolsByName, EachHasItsOwnPercentage) {
  two_pools();
  after(1s, [&] {
    for (const auto& each : machines)
      cluster.patch("nodes", "", each->node(), {{"metadata", {{"labels", {{"haulout.dev/pool", nullptr}}}}}});
  });
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
}

TEST_F(PoolsByName, AnotherPoolsCordonAndFailureHoldNobodyUp) {
  machine_of("web", "web1", {.rolls_back = true});
  machine_of("web", "web2", {.target = ""});
  cordon("web2");
  Machine& db1 = machine_of("db", "db1", {.target = ""});
  Machine& db2 = machine_of("db", "db2", {.target = ""});
  after(10min, [&] { db1.want("1.1"); });
  after(20min, [&] {
    EXPECT_EQ(state("web1"), "waiting") << story();
    EXPECT_THAT(
        node("web1")["metadata"]["annotations"].value("haulout.dev/message", ""),
        HasSubstr("of pool web, at most 1 node may be unavailable at a time, and 1 is: web2 (cordoned with kubectl)"));
    expect_updated(db1);
    uncordon("web2");
  });
  after(40min, [&] {
    EXPECT_EQ(state("web1"), "degraded") << story();
    db2.want("1.1");
  });
  run_for(1h);
  expect_updated(db2);
}

// A failure in the node's own pool keeps the node from its update, although the failed node has lost its pool label.
TEST_F(PoolsByName, AFailureInTheOwnPoolHoldsANodeBack) {
  limit_percent = 0;
  limit = 2;
  machine_of("db", "db1", {.rolls_back = true});
  Machine& db2 = machine_of("db", "db2", {.target = ""});
  after(10min, [&] {
    EXPECT_EQ(state("db1"), "degraded") << story();
    cluster.patch("nodes", "", "db1", {{"metadata", {{"labels", {{"haulout.dev/pool", nullptr}}}}}});
    db2.want("1.1");
  });
  run_for(30min);
  EXPECT_EQ(label("db2", "haulout.dev/reason"), "UpdateFailedElsewhere") << story();
}

}  // namespace
}  // namespace haulout::fleet
