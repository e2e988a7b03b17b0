// The nodes that wait for a slot go in an order (--roll-out-order), and a node that cannot go holds nobody up.
#include "tests/fleet/fleet.hpp"
#include "tests/fleet/scripted_gates.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct InOrder : Fleet {
  void by(const std::string& order) {
    slots.order = *agent::parse_roll_out_order(order);
    checks.roll_out_order = order;
  }
  std::string reason(const std::string& name) const { return label(name, "haulout.dev/reason"); }
  std::string message(const std::string& name) const { return sim::annotation(node(name), "haulout.dev/message"); }
  // Adds a machine that wants no update yet, with this value of the label.
  Machine& made(const std::string& name, const std::string& key, const std::string& value) {
    Machine& machine_of_it = machine(name, {.target = ""});
    if (!value.empty()) cluster.patch("nodes", "", name, {{"metadata", {{"labels", {{key, value}}}}}});
    return machine_of_it;
  }
  // The first machine has the only slot while all others begin to want the update, one after the other.
  void all_want() {
    machines.front()->plan().hooks = {"before-drain/wait"};
    machines.front()->plan().hook_takes = 4min;
    for (std::size_t i = 0; i < machines.size(); ++i)
      after(static_cast<int>(i + 1) * 20s, [this, i] { machines[i]->want("1.1"); });
  }
  // The nodes whose drains began, in their order, without the first one.
  std::vector<std::string> drained() const {
    std::vector<std::string> drained;
    std::map<std::string, std::string> last;
    for (const auto& [name, state] : checks.states)
      if (std::exchange(last[name], state) == "waiting" && state == "draining") drained.push_back(name);
    if (!drained.empty()) drained.erase(drained.begin());
    return drained;
  }
};

const std::string zone = "topology.kubernetes.io/zone";

TEST_F(InOrder, OneZoneAfterTheOther) {
  by("zone");
  made("n0", zone, "b");
  for (const auto& [name, of] : {std::pair("n1", "c"), std::pair("n2", "b"), std::pair("n3", "a"), std::pair("n4", ""),
                                 std::pair("n5", "b"), std::pair("n6", "a")})
    made(name, zone, of);
  all_want();
  run_fleet();
  std::vector<std::string> zones;
  for (const std::string& name : drained()) zones.push_back(label(name, zone));
  EXPECT_THAT(zones, ElementsAre("a", "a", "b", "b", "c", "")) << story();
}

TEST_F(InOrder, ByTheNumbersInALabel) {
  by("label:rank");
  made("n0", "rank", "0");
  for (const auto& [name, rank] : {std::pair("n1", "10"), std::pair("n2", "blue"), std::pair("n3", "9"),
                                   std::pair("n4", ""), std::pair("n5", "2")})
    made(name, "rank", rank);
  all_want();
  run_fleet();
  EXPECT_THAT(drained(), ElementsAre("n5", "n3", "n1", "n2", "n4")) << story();
}

// P7: the agents are killed while they wait. The next ones keep the places in the line.
TEST_F(InOrder, WhoHasNeededItsUpdateForLongerGoesFirst) {
  by("asked");
  for (const char* name : {"n0", "n4", "n3", "n2", "n1"}) made(name, "", "");
  all_want();
  after(3min, [&] {
    for (const auto& each : machines)
      if (each->node() != "n0") each->kill_agent();
  });
  run_fleet();
  EXPECT_THAT(drained(), ElementsAre("n4", "n3", "n2", "n1")) << story();
}

// With several slots nobody waits longer than for those before it to get theirs.
TEST_F(InOrder, SeveralSlotsAreTakenAtOnce) {
  limit = 3;
  by("label:rank");
  for (const auto& [name, rank] : {std::pair("n1", "1"), std::pair("n2", "2"), std::pair("n3", "3"),
                                   std::pair("n4", "4"), std::pair("n5", "5"), std::pair("n6", "6")})
    machine(name);
  for (std::size_t i = 0; i < machines.size(); ++i)
    cluster.patch("nodes", "", machines[i]->node(), {{"metadata", {{"labels", {{"rank", std::to_string(i)}}}}}});
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
  EXPECT_LT(elapsed(), 15min) << story();
}

// P8: nodes that cannot go hold nobody up: one whose gate is closed, one that is not Ready, one that is degraded.
TEST_F(InOrder, ANodeThatCannotGoHoldsNobodyUp) {
  by("label:rank");
  gates = [this](k8s::Client&, const std::string& name) {
    return std::make_unique<ScriptedGates>(clock, [name](const agent::GateQuestion&) {
      if (name != "closed") return agent::GateAnswer{};
      return agent::GateAnswer{{{.name = "window",
                                 .verdict = agent::Gate::Verdict::closed,
                                 .reason = "OutsideWindow",
                                 .message = "the window is closed"}}};
    });
  };
  limit = 2;
  made("n0", "rank", "9");
  made("closed", "rank", "1");
  made("degraded", "rank", "2").plan().rolls_back = true;
  made("last", "rank", "8");
  after(1min, [&] { machines[2]->want("1.1"); });
  after(1h, [&] {
    EXPECT_EQ(state("degraded"), "degraded") << story();
    machines[1]->want("1.1");
    machines[3]->want("1.1");
  });
  run_for(2h);
  EXPECT_EQ(state("closed"), "pending") << story();
  expect_updated(*machines[3]);
}

// P8: the agent of a node has died while it waited. Nothing on its Node tells that. After ten minutes in which it has
// not taken the free slot, the others pass it over, and keep their own order.
TEST_F(InOrder, ANodeWhoseAgentHasDiedIsPassedOver) {
  by("label:rank");
  Json dead = a_node("dead");
  dead["metadata"]["labels"] = {{"rank", "1"},
                                {"haulout.dev/state", "waiting"},
                                {"haulout.dev/reason", "WaitingForSlot"},
                                {"haulout.dev/pool", "default"}};
  add(dead);
  for (const char* rank : {"4", "2", "3"}) made("n" + std::string(rank), "rank", rank);
  after(1min, [&] {
    for (const auto& each : machines) each->want("1.1");
  });
  after(8min, [&] {
    for (const auto& each : machines) EXPECT_EQ(reason(each->node()), "WaitingForOrder") << story();
    EXPECT_EQ(message("n2"), "1 node goes before this one in the roll-out, by the label rank: dead (1)");
    EXPECT_THAT(message("n4"),
                HasSubstr("3 nodes go before this one in the roll-out, by the label rank: dead (1), n2"));
  });
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
  std::vector<std::string> order;
  for (const auto& [name, state] : checks.states)
    if (state == "ready") order.push_back(name);
  EXPECT_THAT(order, ElementsAre("n2", "n3", "n4")) << story();
  EXPECT_LT(elapsed(), 30min);
}

// P8: the same with nodes that begin to wait one after the other. Each of them measures for itself how long the dead
// one leaves a free slot, and goes on with that when the slot is free again. So it waits for some minutes more than the
// one before, and not for ten.
TEST_F(InOrder, DeadNodesCostTenMinutesOnceAndNotForEachSlot) {
  by("label:rank");
  for (const char* name : {"dead-1", "dead-2"}) {
    Json dead = a_node(name);
    dead["metadata"]["labels"] = {{"rank", std::string(name).substr(5)},
                                  {"haulout.dev/state", "waiting"},
                                  {"haulout.dev/reason", "WaitingForSlot"},
                                  {"haulout.dev/pool", "default"}};
    add(dead);
  }
  for (int i = 0; i < 9; ++i) made("n" + std::to_string(i), "rank", std::to_string(10 + i));
  for (std::size_t i = 0; i < machines.size(); ++i)
    after(static_cast<int>(i + 1) * 1min, [this, i] { machines[i]->want("1.1"); });
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
  EXPECT_LT(elapsed(), 60min) << story();
}

// A node that waits for the waves of one version does not hold up one that has another.
TEST_F(InOrder, AHaltOfOneVersionHoldsUpNoOther) {
  by("label:rank");
  limit = 3;
  slots.halt_after = checks.halt_after = 1;
  options.ramp = true;
  made("n1", "rank", "1").plan().rolls_back = true;
  made("n2", "rank", "2");
  made("n3", "rank", "3");
  after(1min, [&] { machines[0]->want("1.1"); });
  after(1h, [&] { machines[1]->want("1.1"); });
  after(2h, [&] {
    EXPECT_EQ(reason("n2"), "RollOutHalted") << story();
    machines[2]->want("1.2");
  });
  run_for(3h);
  EXPECT_EQ(machines[2]->version(), "1.2") << story();
  EXPECT_EQ(reason("n2"), "RollOutHalted");
}

// If agents have different orders, each of two nodes may wait for the other one, but not for ever.
TEST_F(InOrder, AgentsWithDifferentOrdersDoNotWaitForEachOtherForEver) {
  by("label:rank");
  made("n1", "other", "1");
  slots.order = *agent::parse_roll_out_order("label:other");
  made("n2", "other", "2");
  cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"rank", "2"}}}}}});
  cluster.patch("nodes", "", "n2", {{"metadata", {{"labels", {{"rank", "1"}}}}}});
  checks.roll_out_order = "any";
  after(1min, [&] {
    for (const auto& each : machines) each->want("1.1");
  });
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
}

TEST_F(InOrder, TheCheckFindsNodesThatDoNotKeepIt) {
  by("label:reverse");
  checks.roll_out_order = "label:rank";
  for (const auto& [name, rank, reverse] :
       {std::tuple("n0", "0", "9"), std::tuple("n1", "1", "2"), std::tuple("n2", "2", "1")}) {
    made(name, "rank", rank);
    cluster.patch("nodes", "", name, {{"metadata", {{"labels", {{"reverse", reverse}}}}}});
  }
  all_want();
  run_all(6h, true);
  EXPECT_THAT(checks.violations, Contains(HasSubstr("the order: n2 begins its update before n1"))) << story();
}

}  // namespace
}  // namespace haulout::fleet
