// P6 with waves (--ramp): never more nodes at once than the present wave allows, also when several take a slot at the
// same time, and an agent that waits is woken when a wave ends.
#include "agent/node/record.hpp"
#include "retry/deadline.hpp"
#include "tests/agent/slots/lease_slots_fixture.hpp"

namespace haulout::agent {
namespace {
namespace asio = boost::asio;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct InWavesOfSlots : LeaseSlotsTest {
  InWavesOfSlots() {
    options.grouping = {};
    options.limit = [this](std::size_t) { return pool_limit; };
    options.ramp = *parse_ramp("1,2");
    pool_limit = 3;
    for (const char* name : {"a3", "a4", "a5"})
      add({{"apiVersion", "v1"},
           {"kind", "Node"},
           {"metadata",
            {{"name", name}, {"uid", std::string(name) + "-uid"}, {"labels", {{"haulout.dev/pool", "default"}}}}},
           {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }
  Contender& aimed(const std::string& name, const std::string& version = "2.0") {
    Contender& made = node(name);
    made.slots.aim_at(version);
    return made;
  }
  // Writes the record that the agent of this node would write.
  void record(const std::string& name, Record record) {
    record.pool = "default";
    cluster.patch("nodes", "", name,
                  {{"metadata",
                    {{"annotations", {{"haulout.dev/record", encode_record(record)}}},
                     {"labels", {{"haulout.dev/state", std::string(to_string(record.state))}}}}}});
  }
  void comes_back(const std::string& name, const std::string& version = "2.0", State state = State::idle) {
    Record record_of_it;
    record_of_it.state = state;
    record_of_it.updated_to = version;
    record(name, record_of_it);
  }
  // 200 nodes wait while a1 has the only place of the first wave. Then `ends` happens, and a1 releases its slot.
  // Returns how often all Nodes were listed in the minute after that.
  std::size_t lists_of_many_when(const std::function<void()>& ends) {
    hold("haulout-default-0", "a1");
    std::size_t before = 0;
    live([&]() -> asio::awaitable<void> {
      co_await with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
        for (std::size_t i = 0; i < 200; ++i) {
          const std::string name = "w" + std::to_string(i);
          add({{"apiVersion", "v1"},
               {"kind", "Node"},
               {"metadata",
                {{"name", name},
                 {"uid", name + "-uid"},
                 {"labels", {{"haulout.dev/pool", "default"}, {"haulout.dev/state", "waiting"}}}}},
               {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
        }
        for (std::size_t i = 0; i < 200; ++i) group.spawn(ask_until_ours(aimed("w" + std::to_string(i)).slots, clock));
        co_await clock.sleep_until(clock.now() + 50s);
        before = reads_of_nodes();
        ends();
        cluster.remove("leases", "haulout", "haulout-default-0");
        co_await clock.sleep_until(clock.now() + 1min);
      });
    });
    return reads_of_nodes() - before;
  }
  static asio::awaitable<void> ask_until_ours(LeaseSlots& slots, Clock& clock) {
    for (;;) {
      const auto turn = co_await slots.take(clock.now() + 2min);
      if (turn && turn->ours) co_return;
      co_await slots.changed();
      co_await clock.sleep_until(clock.now() + 200ms);
    }
  }
  std::size_t reads_of_nodes() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        cluster.audit(), [](const auto& entry) { return entry.verb == "list" && entry.resource == "nodes"; }));
  }
};

TEST_F(InWavesOfSlots, ANodeWaitsForTheWaveBefore) {
  live([this]() -> asio::awaitable<void> {
    const auto first = co_await aimed("a1").slots.take(soon());
    EXPECT_TRUE(first && first->ours);
    Contender& a2 = aimed("a2");
    const auto second = co_await a2.slots.take(soon());
    EXPECT_TRUE(second && !second->ours);
    EXPECT_EQ(second->reason, "WaitingForWave");
    EXPECT_EQ(second->why, "wave 1 of 2 of version 2.0: 0 of 1 node has come back well, 1 is being updated (a1)");
    EXPECT_THAT(leases(), ElementsAre("haulout-default-0"));
    EXPECT_THAT(writes(), SizeIs(1)) << "no write without a place in the wave";
    comes_back("a1");
    cluster.remove("leases", "haulout", "haulout-default-0");
    const auto next = co_await a2.slots.take(soon());
    EXPECT_TRUE(next && next->ours);
    const auto beside = co_await aimed("b1").slots.take(soon());
    EXPECT_TRUE(beside && beside->ours) << "wave 2 has two nodes";
    const auto third = co_await aimed("a3").slots.take(soon());
    EXPECT_TRUE(third && !third->ours);
  });
}

TEST_F(InWavesOfSlots, AFullPoolIsToldAsSuch) {
  pool_limit = 1;
  live([this]() -> asio::awaitable<void> {
    for (const char* name : {"a3", "a4", "a5"}) comes_back(name);
    hold("haulout-default-0", "a1");
    const auto turn = co_await aimed("b1").slots.take(soon());
    EXPECT_TRUE(turn && !turn->ours);
    EXPECT_EQ(turn->reason, "WaitingForSlot");
    pool_limit = 0;
    comes_back("a3", "1.0");
    const auto none = co_await aimed("a2").slots.take(soon());
    EXPECT_EQ(none->reason, "WaitingForSlot");
    EXPECT_THAT(none->why, HasSubstr("raise max-unavailable"));
  });
}

TEST_F(InWavesOfSlots, AnUpdateWithoutAVersionHasNone) {
  live([this]() -> asio::awaitable<void> {
    const auto first = co_await aimed("a1", "").slots.take(soon());
    const auto second = co_await aimed("a2", "").slots.take(soon());
    EXPECT_TRUE(first && first->ours && second && second->ours) << "only max-unavailable limits";
  });
}

TEST_F(InWavesOfSlots, EachVersionHasItsOwn) {
  live([this]() -> asio::awaitable<void> {
    comes_back("a3", "2.0");
    comes_back("a4", "2.0");
    comes_back("a5", "2.0");
    const auto old = co_await aimed("a1", "2.0").slots.take(soon());
    EXPECT_TRUE(old && old->ours) << "2.0 is in all nodes' waves";
    Record held;
    held.state = State::draining;
    held.slot = old->slot;
    held.slot_version = held.to = "2.0";
    record("a1", held);
    const auto early = co_await aimed("a2", "3.0").slots.take(soon());
    EXPECT_TRUE(early && !early->ours) << "the version that a1 boots may still change";
    held.state = State::degraded;
    record("a1", held);
    const auto next = co_await aimed("a2", "3.0").slots.take(soon());
    EXPECT_TRUE(next && next->ours) << "a1 failed with another version";
    const auto third = co_await aimed("b1", "3.0").slots.take(soon());
    EXPECT_TRUE(third && !third->ours);
    EXPECT_THAT(third->why, HasSubstr("wave 1 of 2 of version 3.0: 0 of 1 node has come back well, 1 is being"));
  });
}

// P6: several agents take a slot at the same moment, for each seed in another order.
TEST_F(InWavesOfSlots, OfManyAtTheSameMomentNoMoreThanTheWaveGo) {
  for (std::size_t well : {0u, 1u}) {
    if (well == 1) comes_back("a5");
    std::vector<Turn> turns(5);
    live([&]() -> asio::awaitable<void> {
      co_await with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
        std::size_t i = 0;
        for (const char* name : {"a1", "a2", "b1", "a3", "a4"})
          group.spawn([](LeaseSlots& slots, TimePoint deadline, Turn& turn) -> asio::awaitable<void> {
            auto taken = co_await slots.take(deadline);
            if (taken) turn = *taken;
          }(aimed(name).slots, soon(), turns[i++]));
        co_await group.join();
      });
    });
    const auto ours = std::count_if(turns.begin(), turns.end(), [](const Turn& turn) { return turn.ours; });
    EXPECT_EQ(ours, 1) << well;  // of the two places of wave 2, all ask for the first name
    EXPECT_THAT(leases(), SizeIs(1));
    cluster.remove("leases", "haulout", leases().front());
  }
}

// P6: another agent, whose ramp is another one, takes a slot between the look and the Lease of this one.
TEST_F(InWavesOfSlots, ASlotThatIsOneTooManyIsGivenBack) {
  live([this]() -> asio::awaitable<void> {
    Contender& a1 = aimed("a1");
    cluster.on_change([this, done = false](const sim::Change& change) mutable {
      if (change.key.resource != "leases" || std::exchange(done, true)) return;
      cluster.after(Duration::zero(), [this] { hold("haulout-default-1", "b1"); });
    });
    const auto turn = co_await a1.slots.take(soon());
    EXPECT_TRUE(turn && !turn->ours);
    EXPECT_EQ(turn->reason, "WaitingForWave");
    EXPECT_THAT(turn->why, HasSubstr("1 is being updated (b1)"));
    EXPECT_THAT(leases(), ElementsAre("haulout-default-1"));
  });
}

// P7: the agent was killed after it had created the Lease.
TEST_F(InWavesOfSlots, ASlotThatWasTakenBeforeACrashIsKeptOrGivenBack) {
  live([this]() -> asio::awaitable<void> {
    hold("haulout-default-0", "a1");
    const auto kept = co_await aimed("a1").slots.take(soon());
    EXPECT_TRUE(kept && kept->ours);
    hold("haulout-default-1", "b1");
    const auto given_back = co_await aimed("a1").slots.take(soon());
    EXPECT_TRUE(given_back && !given_back->ours);
    EXPECT_THAT(leases(), ElementsAre("haulout-default-1"));
  });
}

// P6: nodes of the wave release their slots while another one looks. Each is in neither list: it is verified after the
// list of the Nodes, and has released its slot before the list of the Leases. It keeps its place all the same.
TEST_F(InWavesOfSlots, ANodeThatReleasesItsSlotDuringALookIsNotForgotten) {
  options.ramp = *parse_ramp("1,3");
  pool_limit = 6;
  comes_back("a5");
  for (const auto& [lease, name] : {std::pair("haulout-default-0", "a1"), std::pair("haulout-default-1", "a2"),
                                    std::pair("haulout-default-2", "a3")})
    hold(lease, name);
  live([this]() -> asio::awaitable<void> {
    cluster.server().on_answer([this, looks = 0](const sim::AuditEntry& entry) mutable {
      if (entry.verb != "list" || entry.resource != "nodes" || ++looks > 2) return;
      comes_back(looks == 1 ? "a1" : "a2");
      cluster.remove("leases", "haulout", looks == 1 ? "haulout-default-0" : "haulout-default-1");
    });
    const auto turn = co_await aimed("b1").slots.take(soon());
    EXPECT_TRUE(turn && !turn->ours);
    EXPECT_EQ(turn->reason, "WaitingForWave");
    EXPECT_THAT(leases(), ElementsAre("haulout-default-1", "haulout-default-2"));
  });
}

TEST_F(InWavesOfSlots, WhoWaitsIsWokenWhenTheWaveEnds) {
  hold("haulout-default-0", "a1");
  live([this]() -> asio::awaitable<void> {
    Contender& b1 = aimed("b1");
    const auto waiting = co_await b1.slots.take(soon());
    EXPECT_TRUE(waiting && !waiting->ours);
    const TimePoint before = clock.now();
    cluster.after(1min, [this] {
      comes_back("a1");
      cluster.remove("leases", "haulout", "haulout-default-0");
    });
    co_await b1.slots.changed();
    EXPECT_GE(clock.now() - before, 1min);
    EXPECT_LT(clock.now() - before, 1min + 1s);
    const auto turn = co_await b1.slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
  });
}

// P10: a node of the wave comes back, and another one is still being updated: nobody who waits has anything to ask.
TEST_F(InWavesOfSlots, WhoWaitsSleepsWhileTheWaveLasts) {
  comes_back("a5");
  hold("haulout-default-0", "a1");
  hold("haulout-default-1", "a2");
  live([this]() -> asio::awaitable<void> {
    Contender& b1 = aimed("b1");
    const auto waiting = co_await b1.slots.take(soon());
    EXPECT_TRUE(waiting && !waiting->ours);
    const TimePoint before = clock.now();
    cluster.after(10s, [this] {
      comes_back("a1");
      cluster.remove("leases", "haulout", "haulout-default-0");
    });
    const std::size_t reads = reads_of_nodes();
    co_await b1.slots.changed();
    EXPECT_GE(clock.now() - before, 40s) << "only for a message that is up to date";
    EXPECT_EQ(reads_of_nodes(), reads);
    const auto still = co_await b1.slots.take(soon());
    EXPECT_TRUE(still && !still->ours);
    EXPECT_THAT(still->why, HasSubstr("2 of 3 nodes have come back well, 1 is being updated (a2)"));
  });
}

// The slot is released, and the record does not show yet that the node has come back well: the agent asks again within
// seconds, and not at once.
TEST_F(InWavesOfSlots, ARecordThatComesLateIsSeenSoon) {
  comes_back("a1", "2.0", State::soaking);
  live([this]() -> asio::awaitable<void> {
    Contender& b1 = aimed("b1");
    const auto waiting = co_await b1.slots.take(soon());
    EXPECT_TRUE(waiting && !waiting->ours);
    EXPECT_THAT(waiting->why, HasSubstr("1 is being updated (a1)"));
    const TimePoint before = clock.now();
    co_await b1.slots.changed();
    EXPECT_GE(clock.now() - before, 5s);
    EXPECT_LE(clock.now() - before, 10s);
    const auto still = co_await b1.slots.take(soon());
    EXPECT_TRUE(still && !still->ours);
    const TimePoint again = clock.now();
    co_await b1.slots.changed();
    EXPECT_GE(clock.now() - again, 2min) << "not each few seconds";
    comes_back("a1");
    const auto turn = co_await b1.slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
  });
}

// A node of the wave gives its attempt up. Its place in the wave is free again.
TEST_F(InWavesOfSlots, AnAttemptThatWasGivenUpLeavesItsPlace) {
  hold("haulout-default-0", "a1");
  live([this]() -> asio::awaitable<void> {
    Contender& b1 = aimed("b1");
    const auto waiting = co_await b1.slots.take(soon());
    EXPECT_TRUE(waiting && !waiting->ours);
    cluster.remove("leases", "haulout", "haulout-default-0");
    const auto turn = co_await b1.slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
    Contender& a2 = aimed("a2");
    const auto next = co_await a2.slots.take(soon());
    EXPECT_TRUE(next && !next->ours) << "still wave 1";
  });
}

// P10: a node of the first wave releases its slot without having come back well, and 200 nodes wait. Its place is free,
// so one of them goes. The others do not ask for the second wave, which has not begun.
TEST_F(InWavesOfSlots, OfManyWhoWaitOneTakesThePlaceThatWasGivenUp) {
  const std::size_t lists = lists_of_many_when([this] {
    Record given_up;
    given_up.state = State::pending;
    record("a1", given_up);
  });
  EXPECT_THAT(leases(), SizeIs(1)) << "one has taken the place";
  EXPECT_LE(lists, 20u);
}

// P6: like this, if the node has failed with the version. Its place is not free, so nobody goes.
TEST_F(InWavesOfSlots, OfManyWhoWaitNobodyTakesThePlaceOfANodeThatHasFailed) {
  const std::size_t lists = lists_of_many_when([this] {
    Record failed;
    failed.state = State::pending;
    failed.failed_to = "2.0";
    record("a1", failed);
  });
  EXPECT_THAT(leases(), IsEmpty());
  EXPECT_LE(lists, 20u);
}

// A Node that cannot be read has not come back well for sure, and one that was deleted leaves its place.
TEST_F(InWavesOfSlots, ANodeThatReleasedItsSlotAndCannotBeReadKeepsItsPlace) {
  hold("haulout-default-0", "a1");
  live([this]() -> asio::awaitable<void> {
    Contender& b1 = aimed("b1");
    const auto waiting = co_await b1.slots.take(soon());
    EXPECT_TRUE(waiting && !waiting->ours);
    const TimePoint before = clock.now();
    comes_back("a1");
    cluster.forbid("get", "nodes");
    cluster.remove("leases", "haulout", "haulout-default-0");
    co_await b1.slots.changed();
    EXPECT_GE(clock.now() - before, 30s) << "only for a message that is up to date";
    cluster.permit("get", "nodes");
    hold("haulout-default-0", "a2");
    const auto still = co_await b1.slots.take(soon());
    EXPECT_TRUE(still && still->ours) << "wave 2 has two nodes";
    Contender& a4 = aimed("a4");
    const auto third = co_await a4.slots.take(soon());
    EXPECT_TRUE(third && !third->ours);
    const TimePoint deleted = clock.now();
    cluster.remove("nodes", "", "a2");
    cluster.remove("leases", "haulout", "haulout-default-0");
    comes_back("b1");
    cluster.remove("leases", "haulout", "haulout-default-1");
    co_await a4.slots.changed();
    EXPECT_LT(clock.now() - deleted, 5s);
  });
}

// The pool of a node is that in its record.
TEST_F(InWavesOfSlots, AnotherPoolsNodesDoNotCount) {
  live([this]() -> asio::awaitable<void> {
    Record elsewhere;
    elsewhere.state = State::idle;
    elsewhere.updated_to = "2.0";
    elsewhere.pool = "db";
    cluster.patch("nodes", "", "a5",
                  {{"metadata", {{"annotations", {{"haulout.dev/record", encode_record(elsewhere)}}}}}});
    const auto first = co_await aimed("a1").slots.take(soon());
    EXPECT_TRUE(first && first->ours);
    const auto second = co_await aimed("a2").slots.take(soon());
    EXPECT_TRUE(second && !second->ours);
    EXPECT_THAT(second->why, HasSubstr("wave 1 of 2"));
  });
}

}  // namespace
}  // namespace haulout::agent
