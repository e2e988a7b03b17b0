// Tests named pools. All numbers refer to the nodes of the pool.
#include "tests/agent/slots/lease_slots_fixture.hpp"

#include "agent/node/record.hpp"

namespace haulout::agent {
namespace {
namespace asio = boost::asio;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct NamedPools : LeaseSlotsTest {
  NamedPools() {
    options.grouping = {};
    options.limit = [](std::size_t nodes) { return std::max<std::size_t>(1, nodes / 4); };
    for (const char* name : {"db1", "db2"}) add_node(name, "db");
    for (const char* name : {"web1", "web2", "web3", "web4", "web5", "web6"}) add_node(name, "web");
    for (const char* name : {"a1", "a2", "b1"}) cluster.remove("nodes", "", name);
  }
  // Adds a node as its agent has labelled and recorded it. If `pool` is empty, the node has no agent.
  void add_node(const std::string& name, const std::string& pool) {
    sim::Json metadata{{"name", name}, {"uid", name + "-uid"}};
    if (!pool.empty()) {
      Record record;
      record.state = State::idle;
      record.pool = pool;
      metadata["labels"] = {{"haulout.dev/pool", pool}};
      metadata["annotations"] = {{"haulout.dev/record", encode_record(record)}};
    }
    add({{"apiVersion", "v1"},
         {"kind", "Node"},
         {"metadata", metadata},
         {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }
  Contender& node_in(const std::string& pool, const std::string& name) {
    options.grouping.pool = pool;
    return node(name);
  }
  void unlabel(const std::string& name) {
    cluster.patch("nodes", "", name, {{"metadata", {{"labels", {{"haulout.dev/pool", nullptr}}}}}});
  }
};

// P6: the limit is a quarter of the two nodes of the pool db, not of all eight nodes.
TEST_F(NamedPools, APercentageIsOfThePool) {
  for (const char* name : {"db1", "web1"}) unlabel(name);  // a label that a person removed changes nothing
  live([this]() -> asio::awaitable<void> {
    const auto first = co_await node_in("db", "db1").slots.take(soon());
    const auto second = co_await node_in("db", "db2").slots.take(soon());
    EXPECT_TRUE(first && first->ours);
    EXPECT_TRUE(second && !second->ours);
    EXPECT_THAT(second->why,
                HasSubstr("of pool db, at most 1 node may be unavailable at a time, and 1 is: db1 (has the slot)"));
  });
  EXPECT_THAT(leases(), ElementsAre("haulout-db-0"));
}

TEST_F(NamedPools, AnotherPoolsCordonHoldsNobodyUp) {
  cluster.cordon("web3");
  cluster.node_down("web4");
  unlabel("web3");
  live([this]() -> asio::awaitable<void> {
    const auto db = co_await node_in("db", "db1").slots.take(soon());
    EXPECT_TRUE(db && db->ours) << (db ? db->why : "");
    const auto web = co_await node_in("web", "web1").slots.take(soon());
    EXPECT_TRUE(web && !web->ours);
    EXPECT_THAT(web->why, HasSubstr("of pool web, at most 1 node may be unavailable at a time, and 2 are: "));
    EXPECT_THAT(web->why, HasSubstr("web3 (cordoned"));
    EXPECT_THAT(web->why, HasSubstr("web4 (NotReady"));
  });
}

// A node that names no pool may belong to this pool. So it counts if it is unavailable. But the nodes of which
// max-unavailable is a percentage do not include it.
TEST_F(NamedPools, ANodeOfNoKnownPoolCountsWhenItIsOutAndInNoPercentage) {
  for (int i = 0; i < 8; ++i) add_node("new" + std::to_string(i), "");
  live([this]() -> asio::awaitable<void> {
    const auto db = co_await node_in("db", "db1").slots.take(soon());
    EXPECT_TRUE(db && db->ours) << (db ? db->why : "");
    const auto second = co_await node_in("db", "db2").slots.take(soon());
    EXPECT_TRUE(second && !second->ours) << "a quarter of two, not of ten";
    cluster.node_down("new3");
    const auto web = co_await node_in("web", "web1").slots.take(soon());
    EXPECT_TRUE(web && !web->ours);
    EXPECT_THAT(web->why, HasSubstr("new3 (NotReady; its pool is unknown: label it haulout.dev/pool=NAME)"));
    cluster.patch("nodes", "", "new3", {{"metadata", {{"labels", {{"haulout.dev/pool", "none"}}}}}});
    const auto again = co_await contenders.back()->slots.take(soon());
    EXPECT_TRUE(again && again->ours) << (again ? again->why : "");
  });
}

// The node has lost its record and its label. The Lease that it holds still names its pool, so it does not count in
// other pools.
TEST_F(NamedPools, ATurnTellsThePoolToo) {
  hold("haulout-web-0", "n9");
  cluster.patch("leases", "haulout", "haulout-web-0", {{"metadata", {{"labels", {{"haulout.dev/pool", "web"}}}}}});
  add_node("n9", "");
  cluster.cordon("n9");
  live([this]() -> asio::awaitable<void> {
    const auto db = co_await node_in("db", "db1").slots.take(soon());
    EXPECT_TRUE(db && db->ours) << (db ? db->why : "");
  });
}

TEST_F(NamedPools, ControlPlaneNodesAreAPoolOfTheirOwn) {
  for (const char* name : {"cp1", "cp2", "cp3"}) {
    add_node(name, "control-plane");
    cluster.patch("nodes", "", name, {{"metadata", {{"labels", {{"node-role.kubernetes.io/control-plane", ""}}}}}});
  }
  add_node("w1", "default");
  options.limit = [](std::size_t) { return std::size_t{3}; };
  live([this]() -> asio::awaitable<void> {
    const auto first = co_await node_in("", "cp1").slots.take(soon());
    const auto second = co_await node_in("", "cp2").slots.take(soon());
    const auto worker = co_await node_in("", "w1").slots.take(soon());
    EXPECT_TRUE(first && first->ours);
    EXPECT_TRUE(second && !second->ours) << "one at a time, whatever the limit";
    EXPECT_TRUE(worker && worker->ours);
  });
  EXPECT_THAT(leases(), ElementsAre("haulout-control-plane-0", "haulout-default-0"));
}

TEST_F(NamedPools, AControlPlaneNodeWithAPoolOfItsOwnGoesByThat) {
  for (const char* name : {"cp1", "cp2"}) {
    add_node(name, "all");
    cluster.patch("nodes", "", name, {{"metadata", {{"labels", {{"node-role.kubernetes.io/control-plane", ""}}}}}});
  }
  options.limit = [](std::size_t) { return std::size_t{2}; };
  live([this]() -> asio::awaitable<void> {
    for (const char* name : {"cp1", "cp2"}) {
      const auto turn = co_await node_in("all", name).slots.take(soon());
      EXPECT_TRUE(turn && turn->ours);
    }
  });
  EXPECT_THAT(leases(), ElementsAre("haulout-all-0", "haulout-all-1"));
}

// A waiting agent watches the unavailable nodes that its message names. So the message is as recent as the watch, and
// the agent soon gets the slot when such a node is available again or deleted.
TEST_F(NamedPools, ANodeThatIsBackInServiceIsNoticedSoon) {
  struct Row {
    const char* what;
    std::function<void()> act;
  };
  const std::vector<Row> rows = {
      {"uncordoned", [this] { cluster.uncordon("db2"); }},
      {"deleted", [this] { cluster.remove("nodes", "", "db2"); }},
  };
  for (const Row& row : rows) {
    cluster.cordon("db2");
    live([&]() -> asio::awaitable<void> {
      Contender& db1 = node_in("db", "db1");
      const auto waiting = co_await db1.slots.take(soon());
      EXPECT_TRUE(waiting && !waiting->ours);
      const TimePoint before = clock.now();
      cluster.after(90s, row.act);
      co_await db1.slots.changed();
      EXPECT_GE(clock.now() - before, 90s) << row.what;
      EXPECT_LT(clock.now() - before, 92s) << row.what;
      const auto turn = co_await db1.slots.take(soon());
      EXPECT_TRUE(turn && turn->ours) << row.what;
      const auto released = co_await db1.slots.release(soon());
      EXPECT_TRUE(released);
    });
  }
}

// A waiting agent can watch two unavailable nodes. It is woken when one of them is available again.
TEST_F(NamedPools, OneOfTwoNodesThatIsBackInServiceIsNoticedSoon) {
  options.limit = [](std::size_t) { return std::size_t{2}; };
  for (const char* name : {"web2", "web3"}) cluster.cordon(name);
  live([this]() -> asio::awaitable<void> {
    Contender& web1 = node_in("web", "web1");
    const auto waiting = co_await web1.slots.take(soon());
    EXPECT_TRUE(waiting && !waiting->ours);
    const TimePoint before = clock.now();
    cluster.after(90s, [this] { cluster.uncordon("web3"); });
    co_await web1.slots.changed();
    EXPECT_GE(clock.now() - before, 90s);
    EXPECT_LT(clock.now() - before, 92s);
    const auto turn = co_await web1.slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
  });
}

// More nodes are unavailable than a waiting agent watches. So its message contains the time at which it was determined.
TEST_F(NamedPools, ManyNodesThatAreOutAreNamedWithTheTime) {
  for (const char* name : {"web2", "web3", "web4"}) cluster.cordon(name);
  live([this]() -> asio::awaitable<void> {
    const auto waiting = co_await node_in("web", "web1").slots.take(soon());
    EXPECT_TRUE(waiting && !waiting->ours);
    EXPECT_THAT(waiting->why, HasSubstr("and 3 were at 00:0"));
  });
}

// A stolen token has created the Leases of all slots in the name of one node. That counts as one unavailable node.
TEST_F(NamedPools, OneNodeWithEveryTurnTakesNoneFromTheOthers) {
  options.limit = [](std::size_t) { return std::size_t{2}; };
  for (int i = 0; i < 2; ++i) {
    const std::string name = "haulout-web-" + std::to_string(i);
    hold(name, "web6");
    cluster.patch("leases", "haulout", name, {{"metadata", {{"labels", {{"haulout.dev/pool", "web"}}}}}});
  }
  live([this]() -> asio::awaitable<void> {
    const auto first = co_await node_in("web", "web1").slots.take(soon());
    EXPECT_TRUE(first && first->ours) << (first ? first->why : "");
    const auto second = co_await node_in("web", "web2").slots.take(soon());
    EXPECT_TRUE(second && !second->ours) << "two nodes are out";
  });
  EXPECT_THAT(leases(), ElementsAre("haulout-web-0", "haulout-web-1", "haulout-web-2"));
}

}  // namespace
}  // namespace haulout::agent
