// Tests Leases as slots, on the simulated cluster.
#include <fmt/format.h>

#include "tests/agent/slots/lease_slots_fixture.hpp"
#include "tests/support/scripted_transport.hpp"

namespace haulout::agent {
namespace {
namespace asio = boost::asio;
using namespace std::chrono_literals;
using sim::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(LeaseSlotsTest, TakesTheZoneFirstAndReleasesItLast) {
  live([this]() -> asio::awaitable<void> {
    LeaseSlots& slots = node("a1").slots;
    const auto turn = co_await slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
    EXPECT_EQ(turn->slot, "lease/haulout/haulout-default-0");
    EXPECT_THAT(leases(), ElementsAre("haulout-default-0", "haulout-default.a-0"));
    const auto again = co_await slots.take(soon());
    EXPECT_TRUE(again && again->ours);
    const auto released = co_await slots.release(soon());
    EXPECT_TRUE(released);
  });
  std::vector<std::string> names;
  std::vector<std::string> verbs;
  for (const auto& entry : cluster.audit()) {
    if (!entry.applied) continue;
    verbs.push_back(entry.verb);
    if (entry.verb == "delete") names.push_back(entry.name);
  }
  EXPECT_THAT(verbs, ElementsAre("create", "create", "delete", "delete"));
  EXPECT_THAT(names, ElementsAre("haulout-default-0", "haulout-default.a-0"));
}

// The agent looks at the Leases again one second after it has created its own, and has the slot only if its Lease still
// exists: the garbage collector deletes a Lease whose Node does not exist.
TEST_F(LeaseSlotsTest, ATurnIsTakenInASecond) {
  options.grouping = {};
  live([this]() -> asio::awaitable<void> {
    const TimePoint began = clock.now();
    const auto turn = co_await node("a1").slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
    EXPECT_GE(clock.now() - began, 1s);
    EXPECT_LT(clock.now() - began, 1100ms);
  });
}

TEST_F(LeaseSlotsTest, AZoneIsLimitedThoughThePoolHasRoom) {
  live([this]() -> asio::awaitable<void> {
    const auto first = co_await node("a1").slots.take(soon());
    const auto same_zone = co_await node("a2").slots.take(soon());
    const auto other_zone = co_await node("b1").slots.take(soon());
    EXPECT_TRUE(first && first->ours);
    EXPECT_TRUE(same_zone && !same_zone->ours);
    EXPECT_THAT(same_zone->why, HasSubstr("zone a"));
    EXPECT_THAT(same_zone->why, HasSubstr("a1"));
    EXPECT_TRUE(other_zone && other_zone->ours);
  });
  EXPECT_THAT(leases(),
              ElementsAre("haulout-default-0", "haulout-default-1", "haulout-default.a-0", "haulout-default.b-0"));
}

// A slot must be free in the zone and in the pool. Here the zone has a free one, and the pool has none. The agent then
// writes nothing, because each write wakes every agent that waits.
TEST_F(LeaseSlotsTest, NothingIsWrittenWithoutRoomInBoth) {
  pool_limit = 1;
  live([this]() -> asio::awaitable<void> {
    const auto first = co_await node("a1").slots.take(soon());
    EXPECT_TRUE(first && first->ours);
    const std::size_t before = writes().size();
    const auto turn = co_await node("b1").slots.take(soon());
    EXPECT_TRUE(turn && !turn->ours);
    EXPECT_THAT(turn->why, HasSubstr("of pool default, at most 1 node"));
    EXPECT_EQ(writes().size(), before);
  });
}

TEST_F(LeaseSlotsTest, OfManyAtTheSameMomentNoMoreThanTheLimitsGo) {
  pool_limit = 1;
  zone_limit = 2;
  std::vector<Turn> turns(3);
  live([&]() -> asio::awaitable<void> {
    co_await with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
      std::size_t i = 0;
      for (const char* name : {"a1", "a2", "b1"})
        group.spawn([](LeaseSlots& slots, TimePoint deadline, Turn& turn) -> asio::awaitable<void> {
          auto taken = co_await slots.take(deadline);
          if (taken) turn = *taken;
        }(node(name).slots, soon(), turns[i++]));
      co_await group.join();
    });
  });
  const auto ours = std::count_if(turns.begin(), turns.end(), [](const Turn& turn) { return turn.ours; });
  EXPECT_EQ(ours, 1);
  // The nodes that did not get the slot leave no Leases behind.
  EXPECT_EQ(leases().size(), static_cast<std::size_t>(2 * ours));
}

// A Lease was created by hand or has lost its label. No list shows it, and no second Lease of its name can be created.
// The agent still finds it, counts it, and takes another slot if the limit allows two.
TEST_F(LeaseSlotsTest, ALeaseWithoutItsLabelIsTakenAllTheSame) {
  options.grouping = {};
  options.limit = [this](std::size_t) { return pool_limit; };
  hold_unlabelled("b1");
  live([this]() -> asio::awaitable<void> {
    LeaseSlots& slots = node("a1").slots;
    const auto first = co_await slots.take(soon());
    EXPECT_TRUE(first && !first->ours);
    EXPECT_THAT(first->why, HasSubstr("b1 (Lease haulout-default-0 lacks the label haulout.dev/pool"));
    const auto second = co_await slots.take(soon());
    EXPECT_TRUE(second && second->ours) << "there is room for two";
    // P6: the Lease without a label counts.
    const auto third = co_await node("a2").slots.take(soon());
    EXPECT_TRUE(third && !third->ours);
    const auto again = co_await contenders.back()->slots.take(soon());
    EXPECT_TRUE(again && !again->ours);
    EXPECT_THAT(again->why, HasSubstr("haulout-default-0"));
    EXPECT_THAT(leases(), ElementsAre("haulout-default-0", "haulout-default-1"));
    cluster.remove("leases", "haulout", "haulout-default-0");
    const auto last = co_await contenders.back()->slots.take(soon());
    EXPECT_TRUE(last && last->ours);
  });
}

TEST_F(LeaseSlotsTest, AnOwnLeaseWithoutItsLabelIsFoundAgain) {
  options.grouping = {};
  options.limit = [](std::size_t) { return std::size_t{1}; };
  hold_unlabelled("a1");
  live([this]() -> asio::awaitable<void> {
    LeaseSlots& slots = node("a1").slots;
    const auto first = co_await slots.take(soon());
    EXPECT_TRUE(first && !first->ours);
    EXPECT_THAT(leases(), IsEmpty()) << "given back, since nobody would find it";
    const auto second = co_await slots.take(soon());
    EXPECT_TRUE(second && second->ours);
  });
}

// P10: a Lease that the watch does not show must not cause repeated requests.
TEST_F(LeaseSlotsTest, ALeaseWithoutItsLabelWakesNobody) {
  options.grouping = {};
  options.limit = [](std::size_t) { return std::size_t{1}; };
  hold_unlabelled("b1");
  live([this]() -> asio::awaitable<void> {
    LeaseSlots& slots = node("a1").slots;
    const auto first = co_await slots.take(soon());
    EXPECT_TRUE(first && !first->ours);
    const TimePoint before = clock.now();
    co_await slots.changed();
    EXPECT_GE(clock.now() - before, 2min);
  });
}

// The agent was killed after it took the Lease of the zone and before it took the Lease of the pool. It has no slot
// yet.
TEST_F(LeaseSlotsTest, ASlotOfTheZoneAloneIsNoTurn) {
  live([this]() -> asio::awaitable<void> {
    Contender& a1 = node("a1");
    const auto lease = co_await client.create<k8s::Lease>(
        slot_lease("haulout", {"default", "a"}, 0, a1.node, client.server_now()), soon());
    EXPECT_TRUE(lease);
    const auto half = co_await a1.slots.confirm(soon());
    EXPECT_TRUE(half && !half->ours);
    const auto turn = co_await a1.slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
    EXPECT_THAT(leases(), ElementsAre("haulout-default-0", "haulout-default.a-0"));
  });
}

TEST_F(LeaseSlotsTest, ASlotOfTheZoneIsGivenBackWhenThePoolIsFull) {
  pool_limit = 1;
  live([this]() -> asio::awaitable<void> {
    Contender& a1 = node("a1");
    const auto other = co_await node("b1").slots.take(soon());
    EXPECT_TRUE(other && other->ours);
    const auto lease = co_await client.create<k8s::Lease>(
        slot_lease("haulout", {"default", "a"}, 0, a1.node, client.server_now()), soon());
    EXPECT_TRUE(lease);
    const auto turn = co_await a1.slots.take(soon());
    EXPECT_TRUE(turn && !turn->ours);
    EXPECT_THAT(leases(), ElementsAre("haulout-default-0", "haulout-default.b-0"));
  });
}

TEST_F(LeaseSlotsTest, ThePoolMayBeALabelOfTheNode) {
  options.grouping = {.pool_label = "role"};
  cluster.patch("nodes", "", "b1", {{"metadata", {{"labels", {{"role", "web"}}}}}});
  options.limit = [](std::size_t) { return std::size_t{1}; };
  live([this]() -> asio::awaitable<void> {
    const auto database = co_await node("a1").slots.take(soon());
    const auto second = co_await node("a2").slots.take(soon());
    const auto web = co_await node("b1").slots.take(soon());
    EXPECT_TRUE(database && database->ours);
    EXPECT_TRUE(second && !second->ours);
    EXPECT_TRUE(web && web->ours);
  });
  EXPECT_THAT(leases(), ElementsAre("haulout-db-0", "haulout-web-0"));
}

// A slot is found by its holder, even if the node's labels have changed.
TEST_F(LeaseSlotsTest, ANodeThatChangesItsPoolKeepsNothingInTheOld) {
  options.grouping = {.pool_label = "role"};
  live([this]() -> asio::awaitable<void> {
    LeaseSlots& slots = node("a1").slots;
    const auto before = co_await slots.take(soon());
    EXPECT_TRUE(before && before->ours);
    cluster.patch("nodes", "", "a1", {{"metadata", {{"labels", {{"role", "web"}}}}}});
    const auto still = co_await slots.confirm(soon());
    EXPECT_TRUE(still && still->ours);
    const auto after = co_await slots.take(soon());
    EXPECT_TRUE(after && after->ours);
    EXPECT_THAT(leases(), ElementsAre("haulout-web-0"));
    cluster.patch("nodes", "", "a1", {{"metadata", {{"labels", {{"role", "db"}}}}}});
    const auto released = co_await slots.release(soon());
    EXPECT_TRUE(released);
    EXPECT_THAT(leases(), IsEmpty());
  });
}

// The agent looks for a slot in another namespace only if the record names that namespace. These values name none, so
// the release sends one request, about the agent's own namespace.
TEST_F(LeaseSlotsTest, NothingIsLookedForWhereNoTurnWasLeftBehind) {
  for (const char* taken : {"lease/haulout/haulout-default-0", "lease/haulout-default-0", "fleetlock/a/b", ""}) {
    const std::size_t before = cluster.audit().size();
    live([&]() -> asio::awaitable<void> {
      LeaseSlots& slots = node("a1").slots;
      slots.remember(taken);
      const auto released = co_await slots.release(soon());
      EXPECT_TRUE(released) << taken;
    });
    EXPECT_EQ(cluster.audit().size() - before, 1u) << taken;
    EXPECT_EQ(cluster.audit().back().ns, "haulout") << taken;
  }
}

TEST_F(LeaseSlotsTest, AMissingLabelIsAnErrorThatSaysSo) {
  cluster.patch("nodes", "", "a1", {{"metadata", {{"labels", {{"zone", nullptr}}}}}});
  live([this]() -> asio::awaitable<void> {
    const auto turn = co_await node("a1").slots.take(soon());
    EXPECT_FALSE(turn);
    if (!turn) EXPECT_THAT(turn.error().message(), HasSubstr("kubectl label --overwrite node a1 zone="));
  });
  EXPECT_THAT(leases(), IsEmpty());
}

TEST_F(LeaseSlotsTest, LimitZeroMeansNobody) {
  pool_limit = 0;
  live([this]() -> asio::awaitable<void> {
    const auto turn = co_await node("a1").slots.take(soon());
    EXPECT_TRUE(turn && !turn->ours);
    EXPECT_THAT(turn->why, HasSubstr("max-unavailable"));
  });
  EXPECT_THAT(writes(), IsEmpty());
}

// The limit falls to zero while the node has a slot. The node keeps the slot. But if it asks for a slot again, it
// releases the one that it has.
TEST_F(LeaseSlotsTest, ALimitThatFallsToZeroTakesATurnBackWhereOneIsSought) {
  live([this]() -> asio::awaitable<void> {
    Contender& a1 = node("a1");
    const auto turn = co_await a1.slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
    pool_limit = 0;
    const auto held = co_await a1.slots.confirm(soon());
    EXPECT_TRUE(held && held->ours);
    const auto sought = co_await a1.slots.take(soon());
    EXPECT_TRUE(sought && !sought->ours);
    EXPECT_THAT(leases(), IsEmpty());
  });
}

TEST_F(LeaseSlotsTest, ANodeThatIsNotInItsOwnPoolGetsNoTurn) {
  live([this]() -> asio::awaitable<void> {
    const auto stranger = co_await node("gone").slots.take(soon());
    EXPECT_FALSE(stranger);
    Contender& replaced = node("a1");
    replaced.node.uid = "former-uid";
    const auto former = co_await replaced.slots.take(soon());
    EXPECT_FALSE(former);
  });
  EXPECT_THAT(writes(), IsEmpty());
}

// Slots with a server whose answers the test chooses. P4: from an answer that cannot be read, the agent concludes
// nothing.
class LeaseSlotsScript : public haulout::testing::VirtualTimeTest {
 protected:
  haulout::testing::ScriptedTransport server{clock};
  k8s::Client client{server, clock};
  SeededRng rng{1};
  OwnNode node{"n1", "u1"};
  LeaseSlots slots{client, rng, node, {}};
  const TimePoint soon = clock.now() + 30s;
  const char* nodes = R"({"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[)"
                      R"({"metadata":{"name":"n1","uid":"u1","resourceVersion":"1"}}]})";
};

TEST_F(LeaseSlotsScript, AnswersThatCannotBeReadAreNoTurn) {
  for (const char* broken : {R"({"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"n1")",
                             R"({"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]})",
                             "<html>Please log in</html>", R"({"kind":"PodList","apiVersion":"v1","items":[]})", ""}) {
    server.answer(haulout::testing::json_response(200, broken));
    EXPECT_FALSE(run(slots.take(soon))) << broken;
    server.answer(haulout::testing::json_response(200, nodes));
    server.answer(haulout::testing::json_response(200, broken));
    EXPECT_FALSE(run(slots.take(soon))) << broken;
    server.answer(haulout::testing::json_response(200, broken));
    EXPECT_FALSE(run(slots.confirm(soon))) << broken;
    server.answer(haulout::testing::json_response(200, broken));
    EXPECT_FALSE(run(slots.release(soon))) << broken;
  }
}

// Another node holds the slot with a Lease that lacks the pool's label, so that no list shows it. That node deletes the
// Lease before this one can read it. This node does not get the slot, and tries again later.
TEST_F(LeaseSlotsScript, ATurnThatIsTakenAndFreeAgainIsAskedForLater) {
  const auto status = [](int code, const char* reason) {
    return haulout::testing::json_response(
        code, fmt::format(R"({{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"{}","code":{},)"
                          R"("message":"leases \"haulout-default-0\"","details":{{"kind":"leases"}}}})",
                          reason, code));
  };
  server.answer(haulout::testing::json_response(200, nodes));
  const auto no_leases = [&] {
    server.answer(haulout::testing::json_response(
        200,
        R"({"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[]})"));
  };
  no_leases();
  server.answer(status(409, "AlreadyExists"));
  server.answer(status(404, "NotFound"));
  no_leases();  // the look-up of Leases that must be released
  const auto turn = run(slots.take(soon));
  ASSERT_TRUE(turn) << turn.error().message();
  EXPECT_FALSE(turn->ours);
  EXPECT_THAT(turn->why, HasSubstr("another node has just taken the slot"));
}

}  // namespace
}  // namespace haulout::agent
