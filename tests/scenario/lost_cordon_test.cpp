// Cordons that are removed during the drain, with or without a watch event, and changes that only look like a removal.
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(Scenario, S42_AHumanUncordons) {
  options.max_concurrent = 1;
  add_pods(4, {.grace = 10});
  after(15s, [this] { cluster.uncordon("n1"); });
  after(100s, [this] { cluster.cordon("n1"); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_TRUE(told.raised("Uncordoned"));
  EXPECT_TRUE(told.withdrawn("Uncordoned"));
  const auto raised = *told.time_of(EventType::diagnosis_raised, "Uncordoned");
  for (const auto& entry : told.entries)
    if (entry.type == EventType::eviction_sent) EXPECT_TRUE(entry.at < raised || entry.at > raised + 80s);
}

TEST_F(Scenario, P3_NotDrainedWhileTheCordonIsLost) {
  add_pods(1, {.grace = 10});
  after(5s, [this] { cluster.uncordon("n1"); });
  options.timeout = 2min;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
}

// All watches are dead, and the drain has not noticed that yet. Only a pod that is newly bound shows that the node is
// schedulable again. The drain does not evict this pod before the node is cordoned again.
TEST_F(Scenario, P3_NothingIsEvictedFromANodeThatTookPodsAgainUnseen) {
  add_pods(1, {.grace = 5});
  after(2s, [this] { cluster.silence_watches(); });
  after(10s, [this] {
    cluster.uncordon("n1");
    add(a_pod("new"));
  });
  after(5min, [this] { cluster.cordon("n1"); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_TRUE(told.raised("Uncordoned"));
  const auto sent = told.time_of(EventType::eviction_sent, "shop/new");
  ASSERT_TRUE(sent);
  EXPECT_GE(*sent - told.entries.front().at, 299s);
}

TEST_F(Scenario, P3_NothingIsEvictedFromANodeThatWasReplacedUnseen) {
  add_pods(1, {.grace = 5});
  after(2s, [this] { cluster.silence_watches(); });
  after(10s, [this] {
    cluster.replace_node("n1");
    add(a_pod("new"));
  });
  EXPECT_THAT(drain(), Ended(Outcome::node_gone));
  EXPECT_THAT(evictions(), SizeIs(1)) << "of the pod that was there";
}

// The cordon was the drain's and is a person's now. So the node was schedulable in between, although no watch event
// said so. Pods that were bound to it in that time do not count as pods that come back to a cordoned node.
TEST_F(Scenario, PodsOfATimeInWhichTheNodeTookSomeUnseenAreNotPinnedToIt) {
  const Json prefers_n1 = {{"sim.haulout.dev/prefers-node", "n1"}};
  add(a_workload("StatefulSet", "db", 3, {{"terminationGracePeriodSeconds", 8}}, prefers_n1));
  after(2s, [this] { cluster.silence_watches(); });
  after(5s, [this] { cluster.uncordon("n1"); });
  after(60s, [this] { cluster.cordon("n1"); });
  options.settle = 5min;
  options.timeout = 1h;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_GE(took(), 60s + options.settle) << "it is the later cordon that has to settle";
  EXPECT_FALSE(told.raised("Uncordoned"));
  EXPECT_EQ(accepted_evictions(), 6u) << "each of them twice";
}

TEST_F(Scenario, P3_NotDrainedWhenTheLastLookFindsAnotherCordon) {
  options.settle = 0s;
  add_pods(1, {.grace = 1});
  cluster.timing().watch_latency = 1s;
  cluster.server().intercept([this, done = false](const sim::Call&, const sim::AuditEntry& entry) mutable {
    const bool last_look = entry.verb == "get" && entry.resource == "nodes" && pods_on("n1").empty();
    if (last_look && !std::exchange(done, true)) {
      cluster.uncordon("n1");
      add(a_pod("new", {.grace = 1}));
      cluster.cordon("n1");
    }
    return std::optional<http::Response>();
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(pods_on("n1"), IsEmpty());
  EXPECT_EQ(accepted_evictions(), 2u);
}

TEST_F(Scenario, ANewSettleTimeIsReported) {
  options.settle = 60s;
  add_pods(1, {.grace = 1});
  after(30s, [this] { cluster.uncordon("n1"); });
  after(40s, [this] { cluster.cordon("n1"); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(told.count(EventType::settling), 2u);
  EXPECT_GE(took(), 100s);
}

// Several managers may own the field `unschedulable` in managedFields, and their entries change with each of their
// other writes. Such a change is not a new cordon.
TEST_F(Scenario, ACordonWhoseManagedFieldsChangeIsNotANewOne) {
  cluster.cordon("n1");
  add_pods(2, {.grace = 5});
  for (int i = 1; i < 100; ++i)
    after(i * 4s, [this, i] {
      Json entries = cluster.get("nodes", "", "n1")["metadata"]["managedFields"];
      for (Json& entry : entries) entry["manager"] = i % 2 == 0 ? "kubectl" : "argocd";
      cluster.patch("nodes", "", "n1", {{"metadata", {{"managedFields", entries}}}});
    });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LT(took(), 30s);
}

TEST_F(Scenario, P10_ANodeThatIsWrittenAllTheTimeIsAskedWithPauses) {
  add_pods(1, {.grace = 1});
  cluster.timing().watch_latency = cluster.timing().watch_latency_jitter = 0s;
  const TimePoint until = clock.now() + 30s;
  cluster.server().intercept([this, until, times = 0](const sim::Call&, const sim::AuditEntry& entry) mutable {
    if (entry.verb == "get" && entry.resource == "nodes" && clock.now() < until)
      cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"times", std::to_string(++times)}}}}}});
    return std::optional<http::Response>();
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LE(requests("list", "pods").size(), 40u);
}

}  // namespace
}  // namespace haulout::scenario
