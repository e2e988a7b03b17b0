// Tests that an agent that waits for a slot, or holds one, is woken by the changes that concern it.
#include "retry/deadline.hpp"
#include "tests/agent/slots/lease_slots_fixture.hpp"

namespace haulout::agent {
namespace {
namespace asio = boost::asio;
using namespace std::chrono_literals;

TEST_F(LeaseSlotsTest, WakesWhenATurnComesFree) {
  pool_limit = 1;
  live([this]() -> asio::awaitable<void> {
    Contender& a1 = node("a1");
    const auto first = co_await a1.slots.take(soon());
    EXPECT_TRUE(first && first->ours);
    Contender& b1 = node("b1");
    const auto waiting = co_await b1.slots.take(soon());
    EXPECT_TRUE(waiting && !waiting->ours);
    const TimePoint before = clock.now();
    cluster.after(1min, [this] { cluster.remove("leases", "haulout", "haulout-default-0"); });
    co_await b1.slots.changed();
    EXPECT_GE(clock.now() - before, 1min);
    EXPECT_LT(clock.now() - before, 1min + 1s);
  });
}

TEST_F(LeaseSlotsTest, WhoHoldsATurnIsWokenByNobodyElses) {
  live([this]() -> asio::awaitable<void> {
    Contender& a1 = node("a1");
    const auto turn = co_await a1.slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
    const TimePoint before = clock.now();
    cluster.after(1min, [this] { hold("haulout-default-1", "b1"); });
    cluster.after(2min, [this] { cluster.remove("leases", "haulout", "haulout-default-0"); });
    co_await a1.slots.changed();
    EXPECT_GE(clock.now() - before, 2min);
    EXPECT_LT(clock.now() - before, 2min + 1s);
  });
}

// P3: while the watch starts, the server returns 401 because a credential is being rotated. The watch ends and must be
// started again. Otherwise the node would be drained although another node has the slot.
TEST_F(LeaseSlotsTest, ATurnIsSeenToBeLostByAWatchThatWasRefusedAtFirst) {
  live([this]() -> asio::awaitable<void> {
    Contender& a1 = node("a1");
    const auto turn = co_await a1.slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
    const TimePoint before = clock.now();
    cluster.switches().unauthorized = true;
    cluster.after(5s, [this] { cluster.switches().unauthorized = false; });
    cluster.after(2min, [this] { cluster.remove("leases", "haulout", "haulout-default-0"); });
    const Result<> woke = co_await with_deadline(clock, before + 12h, [](LeaseSlots& slots) -> Task<> {
      co_await slots.changed();
      co_return Result<>();
    }(a1.slots));
    EXPECT_TRUE(woke) << "the turn was lost hours ago";
    EXPECT_LT(clock.now() - before, 2min + 1s);
  });
}

// P6: a look at the Leases failed halfway, so its result is unknown. The changes that its first half received must not
// be lost.
TEST_F(LeaseSlotsTest, ATurnThatIsLostIsSeenAfterALookThatFailedHalfWay) {
  options.grouping = {};
  options.limit = [this](std::size_t) { return pool_limit; };
  hold_unlabelled("b1");
  live([this]() -> asio::awaitable<void> {
    LeaseSlots& slots = node("a1").slots;
    const auto first = co_await slots.take(soon());
    EXPECT_TRUE(first && !first->ours) << "the Lease without its label is in the way, and known from now on";
    const auto turn = co_await slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
    cluster.remove("leases", "haulout", "haulout-default-1");
    cluster.forbid("get", "leases");
    EXPECT_FALSE(co_await slots.confirm(soon()));
    cluster.permit("get", "leases");
    const Result<> woke = co_await with_deadline(clock, clock.now() + 12h, [](LeaseSlots& lost) -> Task<> {
      co_await lost.changed();
      co_return Result<>();
    }(slots));
    EXPECT_TRUE(woke) << "the turn was lost hours ago";
  });
}

// The waiting agents need no request to know that another node has the slot. They look at the new holder later, each at
// another time.
TEST_F(LeaseSlotsTest, ATurnThatPassesToAnotherWakesNobodyAtOnce) {
  pool_limit = 1;
  live([this]() -> asio::awaitable<void> {
    hold("haulout-default-0", "a1");
    Contender& b1 = node("b1");
    const auto waiting = co_await b1.slots.take(soon());
    EXPECT_TRUE(waiting && !waiting->ours);
    const TimePoint before = clock.now();
    cluster.after(90s, [this] {
      cluster.remove("leases", "haulout", "haulout-default-0");
      hold("haulout-default-0", "a2");
    });
    co_await b1.slots.changed();
    EXPECT_GE(clock.now() - before, 90s + 30s);
    EXPECT_LE(clock.now() - before, 90s + 60s);
  });
}

// No Lease shows that an unavailable node is available again. So an agent that waits for a slot also looks again after
// some minutes.
TEST_F(LeaseSlotsTest, AFreeSlotThatNoLeaseShowsIsSearched) {
  pool_limit = 1;
  live([this]() -> asio::awaitable<void> {
    cluster.cordon("a1");
    Contender& b1 = node("b1");
    const auto waiting = co_await b1.slots.take(soon());
    EXPECT_TRUE(waiting && !waiting->ours);
    const TimePoint before = clock.now();
    cluster.uncordon("a1");
    co_await b1.slots.changed();
    EXPECT_LE(clock.now() - before, 4min);
    const auto turn = co_await b1.slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
  });
}

// The node that holds the slot is also cordoned. When it is uncordoned and its Lease is deleted, an agent that waits
// for the slot is woken within a second.
TEST_F(LeaseSlotsTest, WhoHeldTheTurnIsNotCountedOnceItIsFree) {
  pool_limit = 1;
  live([this]() -> asio::awaitable<void> {
    hold("haulout-default-0", "a1");
    cluster.cordon("a1");
    Contender& b1 = node("b1");
    const auto waiting = co_await b1.slots.take(soon());
    EXPECT_TRUE(waiting && !waiting->ours);
    const TimePoint before = clock.now();
    cluster.after(10s, [this] {
      cluster.uncordon("a1");
      cluster.remove("leases", "haulout", "haulout-default-0");
    });
    co_await b1.slots.changed();
    EXPECT_LT(clock.now() - before, 11s);
    const auto turn = co_await b1.slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
  });
}

}  // namespace
}  // namespace haulout::agent
