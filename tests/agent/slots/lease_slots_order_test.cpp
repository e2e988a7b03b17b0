// P8 with an order (--roll-out-order): a free slot is left to the nodes that go before, but only if they can take it.
#include "agent/node/record.hpp"
#include "tests/agent/slots/lease_slots_fixture.hpp"

namespace haulout::agent {
namespace {
namespace asio = boost::asio;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct InOrderOfSlots : LeaseSlotsTest {
  InOrderOfSlots() {
    options.grouping = {};
    options.limit = [this](std::size_t) { return pool_limit; };
    options.order = *parse_roll_out_order("label:rank");
    pool_limit = 2;
    for (const auto& [name, rank] : {std::pair("a1", "1"), std::pair("a2", "2"), std::pair("b1", "3")})
      cluster.patch("nodes", "", name,
                    {{"metadata", {{"labels", {{"rank", rank}, {"haulout.dev/state", "waiting"}}}}}});
  }
};

TEST_F(InOrderOfSlots, AFreeSlotIsLeftToTheFirst) {
  live([this]() -> asio::awaitable<void> {
    Contender& last = node("b1");
    const auto early = co_await last.slots.take(soon());
    EXPECT_TRUE(early && !early->ours);
    EXPECT_EQ(early->reason, "WaitingForOrder");
    EXPECT_EQ(early->why, "2 nodes go before this one in the roll-out, by the label rank: a1 (1), a2 (2)");
    EXPECT_THAT(writes(), SizeIs(0));
    const auto first = co_await node("a1").slots.take(soon());
    EXPECT_TRUE(first && first->ours);
    const auto again = co_await last.slots.take(soon());
    EXPECT_THAT(again ? again->why : "",
                HasSubstr("1 node goes before this one in the roll-out, by the label rank: a2"));
    const auto second = co_await node("a2").slots.take(soon());
    EXPECT_TRUE(second && second->ours);
    const auto full = co_await last.slots.take(soon());
    EXPECT_EQ(full ? full->reason : "", "WaitingForSlot") << "the holders say more than the order";
  });
}

// The Lease of the node before shows at once that it is this node's turn. No Node is listed for that.
TEST_F(InOrderOfSlots, TheNextGoesWhenTheOneBeforeHasItsSlot) {
  live([this]() -> asio::awaitable<void> {
    cluster.patch("nodes", "", "a2", {{"metadata", {{"labels", {{"haulout.dev/state", "idle"}}}}}});
    Contender& next = node("b1");
    const auto early = co_await next.slots.take(soon());
    EXPECT_EQ(early ? early->reason : "", "WaitingForOrder");
    const TimePoint begin = clock.now();
    hold("haulout-default-0", "a1");
    co_await next.slots.changed();
    EXPECT_LT(clock.now() - begin, Duration(2s));
    const auto turn = co_await next.slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
  });
}

// The node before has had the slot between two looks of this one, and waits no more.
TEST_F(InOrderOfSlots, WhoHasHadASlotGoesBeforeNobodyAnyMore) {
  pool_limit = 1;
  live([this]() -> asio::awaitable<void> {
    cluster.patch("nodes", "", "a2", {{"metadata", {{"labels", {{"haulout.dev/state", "idle"}}}}}});
    Contender& next = node("b1");
    const auto early = co_await next.slots.take(soon());
    EXPECT_EQ(early ? early->reason : "", "WaitingForOrder");
    const TimePoint begin = clock.now();
    cluster.at(begin + 2s, [this] {
      cluster.patch("nodes", "", "a1", {{"metadata", {{"labels", {{"haulout.dev/state", "draining"}}}}}});
      hold("haulout-default-0", "a1");
    });
    cluster.at(begin + 7s, [this] {
      cluster.patch("nodes", "", "a1", {{"metadata", {{"labels", {{"haulout.dev/state", "idle"}}}}}});
      cluster.remove("leases", "haulout", "haulout-default-0");
    });
    co_await next.slots.changed();
    EXPECT_LT(clock.now() - begin, Duration(10s)) << "it does not poll to see that";
    const auto turn = co_await next.slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
  });
}

TEST_F(InOrderOfSlots, ANodeWhoseZoneIsFullHoldsNobodyUp) {
  options.grouping.zone_label = "zone";
  options.limit = [](std::size_t nodes) { return nodes == 3 ? std::size_t{2} : std::size_t{1}; };
  live([this]() -> asio::awaitable<void> {
    const auto first = co_await node("a1").slots.take(soon());
    EXPECT_TRUE(first && first->ours);
    const auto other_zone = co_await node("b1").slots.take(soon());
    EXPECT_TRUE(other_zone && other_zone->ours) << "a2 goes before, but its zone has no slot";
  });
}

TEST_F(InOrderOfSlots, ANodeThatIsCordonedLeavesItsSlotToNobody) {
  live([this]() -> asio::awaitable<void> {
    cluster.cordon("b1");
    const auto turn = co_await node("b1").slots.take(soon());
    EXPECT_TRUE(turn && turn->ours) << "no other node could use the place that it takes up";
  });
}

}  // namespace
}  // namespace haulout::agent
