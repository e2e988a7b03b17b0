// Tests what the agents of a large cluster read when all of them begin to wait for a slot at the same moment.
#include <algorithm>

#include "tests/agent/slots/lease_slots_fixture.hpp"

namespace haulout::agent {
namespace {
namespace asio = boost::asio;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t crowd_size = 100;

class LeaseSlotsCrowdTest : public LeaseSlotsTest {
 protected:
  LeaseSlotsCrowdTest() {
    for (std::size_t i = 0; i < crowd_size; ++i)
      add({{"apiVersion", "v1"},
           {"kind", "Node"},
           {"metadata", {{"name", name(i)}, {"uid", name(i) + "-uid"}, {"labels", {{"haulout.dev/pool", "default"}}}}},
           {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
    options.grouping = {};
    options.limit = [this](std::size_t) { return pool_limit; };
    options.cluster_nodes = crowd_size + 3;
  }

  static std::string name(std::size_t i) { return "m" + std::to_string(i); }

  // Asks for a slot, after the random time that agents wait in such a cluster.
  asio::awaitable<void> ask(Contender& one) {
    co_await clock.sleep_until(clock.now() + rng.between(Duration::zero(), 15ms * crowd_size));
    const auto turn = co_await one.slots.take(clock.now() + 2min);
    EXPECT_TRUE(turn) << turn.error().message();
    got_slots += turn && turn->ours;
  }
  // All agents begin to wait at the same moment.
  void all_ask() {
    live([this]() -> asio::awaitable<void> {
      co_await with_task_group([this](TaskGroup& group) {
        for (std::size_t i = 0; i < crowd_size; ++i) group.spawn(ask(node(name(i))));
        return group.join();
      });
    });
  }
  std::int64_t lists_of_nodes() const {
    return std::ranges::count_if(cluster.audit(),
                                 [](const auto& entry) { return entry.verb == "list" && entry.resource == "nodes"; });
  }

  std::int64_t got_slots = 0;
};

TEST_F(LeaseSlotsCrowdTest, OnlyAgentsThatSeeAFreeSlotListTheNodes) {
  all_ask();
  EXPECT_EQ(got_slots, 2);
  EXPECT_GE(lists_of_nodes(), 2);
  EXPECT_LE(lists_of_nodes(), 20) << "of 100 agents";
}

TEST_F(LeaseSlotsCrowdTest, WithoutTheNumberOfNodesEachAgentListsThem) {
  options.cluster_nodes = 0;
  all_ask();
  EXPECT_EQ(got_slots, 2);
  EXPECT_GE(lists_of_nodes(), 100);
}

TEST_F(LeaseSlotsCrowdTest, WithWavesTheNodesAreReadByOneAgentAfterAnother) {
  options.ramp = {MaxUnavailable{1}};
  std::int64_t in_first_tenth = 0;
  live([this, &in_first_tenth]() -> asio::awaitable<void> {
    cluster.after(150ms, [this, &in_first_tenth] { in_first_tenth = lists_of_nodes(); });
    co_await with_task_group([this](TaskGroup& group) {
      for (std::size_t i = 0; i < crowd_size; ++i) {
        Contender& one = node(name(i));
        one.slots.aim_at("1.1");
        group.spawn(ask(one));
      }
      return group.join();
    });
  });
  EXPECT_EQ(got_slots, 1);
  EXPECT_GE(lists_of_nodes(), 100);
  EXPECT_LE(in_first_tenth, 30);
}

TEST_F(LeaseSlotsCrowdTest, TheRefusalNamesAHolderThatIsDegraded) {
  options.cluster_nodes = 2000;
  pool_limit = 1;
  hold("haulout-default-0", "m7");
  cluster.patch(
      "nodes", "", "m7",
      {{"metadata", {{"labels", {{"haulout.dev/state", "degraded"}, {"haulout.dev/reason", "NodeNotReady"}}}}}});
  live([this]() -> asio::awaitable<void> {
    const TimePoint before = clock.now();
    const auto turn = co_await node("m1").slots.take(soon());
    EXPECT_TRUE(turn && !turn->ours);
    if (turn)
      EXPECT_THAT(turn->why, AllOf(HasSubstr("m7 (degraded: NodeNotReady, keeps its slot)"),
                                   HasSubstr("of pool default, at most 1 node may be unavailable")));
    EXPECT_LT(clock.now() - before, 100ms) << "all slots are taken, so there is nothing to wait for";
  });
  EXPECT_EQ(lists_of_nodes(), 0);
}

TEST_F(LeaseSlotsCrowdTest, WhoHoldsASlotDoesNotSleep) {
  options.cluster_nodes = 2000;
  hold("haulout-default-0", "m1");
  live([this]() -> asio::awaitable<void> {
    const TimePoint before = clock.now();
    const auto turn = co_await node("m1").slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
    EXPECT_LT(clock.now() - before, 1100ms) << "only the second after which a slot is confirmed";
  });
}

TEST_F(LeaseSlotsCrowdTest, WhoWaitedTakesAFreeSlotWithoutASecondSleep) {
  options.cluster_nodes = 2000;
  pool_limit = 1;
  hold("haulout-default-0", "m7");
  live([this]() -> asio::awaitable<void> {
    LeaseSlots& slots = node("m1").slots;
    const auto refused = co_await slots.take(soon());
    EXPECT_TRUE(refused && !refused->ours);
    cluster.after(1min, [this] { cluster.remove("leases", "haulout", "haulout-default-0"); });
    co_await slots.changed();
    const TimePoint before = clock.now();
    const auto turn = co_await slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
    EXPECT_LT(clock.now() - before, 1100ms);
  });
}

TEST_F(LeaseSlotsCrowdTest, AFullZoneIsReasonEnough) {
  options.grouping.zone_label = "zone";
  options.limit = [](std::size_t nodes) { return nodes / 50; };
  hold("haulout-default.a-0", "a1");
  hold("haulout-default.a-1", "m1");
  live([this]() -> asio::awaitable<void> {
    const auto turn = co_await node("a2").slots.take(soon());
    EXPECT_TRUE(turn && !turn->ours);
    if (turn) EXPECT_THAT(turn->why, HasSubstr("pool default in zone a"));
  });
  EXPECT_EQ(lists_of_nodes(), 0);
}

}  // namespace
}  // namespace haulout::agent
