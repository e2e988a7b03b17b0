// Tests which of the Nodes that arrive, in whatever order, is the newest known state.
#include "agent/lifecycle/node_view.hpp"

#include <gmock/gmock.h>

#include "tests/support/scripted_transport.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {
using namespace std::chrono_literals;

k8s::Node node_of(std::string version, std::string uid = "u1") {
  k8s::Node node;
  node.name = "n1";
  node.uid = std::move(uid);
  node.resource_version = std::move(version);
  return node;
}

struct NodeViewTest : haulout::testing::VirtualTimeTest {
  NodeViewTest() { view.learn(node_of("10"), view.news()); }

  std::string version() const { return view.node().resource_version; }
  void pass(Duration time) { run(clock.sleep_until(clock.now() + time)); }

  haulout::testing::ScriptedTransport wire{clock};
  k8s::Client client{wire, clock};
  SeededRng rng{1};
  int schedulable = 0;
  std::vector<bool> seen;
  NodeView view{context.get_executor(),
                client,
                rng,
                "n1",
                {.schedulable = [this] { ++schedulable; },
                 .seen = [this](bool same) { seen.push_back(same); },
                 .deleted = [] {},
                 .watch_reported = [] {}}};
};

TEST_F(NodeViewTest, AnOlderNodeIsNotLearned) {
  view.see(node_of("9"));
  EXPECT_EQ(version(), "10");
  view.see(node_of("11"));
  EXPECT_EQ(version(), "11");
  EXPECT_THAT(seen, ::testing::ElementsAre(true, true));
}

TEST_F(NodeViewTest, AnotherNodeOfTheSameNameIsSeenAndNotLearned) {
  view.see(node_of("11", "u2"));
  EXPECT_EQ(version(), "10");
  EXPECT_THAT(seen, ::testing::ElementsAre(false));
}

TEST_F(NodeViewTest, AnAnswerIsTheNewestStateUnlessTheWatchWasAhead) {
  const std::uint64_t asked = view.news();
  // The resourceVersion goes back, as after the restore of a backup of etcd.
  view.learn(node_of("5"), asked);
  EXPECT_EQ(version(), "5");
  view.learn(node_of("4"), asked);
  EXPECT_EQ(version(), "5");
  view.learn(node_of("6"), asked);
  EXPECT_EQ(version(), "6");
}

TEST_F(NodeViewTest, AListIsAsNewAsItsRequest) {
  view.see(node_of("5"), clock.now());
  EXPECT_EQ(version(), "10");
  pass(1s);
  view.see(node_of("5"), clock.now());
  EXPECT_EQ(version(), "5");
}

TEST_F(NodeViewTest, SaysSinceWhenTheNodeTakesNoPods) {
  EXPECT_EQ(schedulable, 1);
  pass(1min);
  k8s::Node cordoned = node_of("11");
  cordoned.unschedulable = true;
  view.see(cordoned);
  const WallTime since = view.takes_no_pods_since();
  EXPECT_EQ(since, client.server_now());
  pass(1min);
  cordoned.resource_version = "12";
  view.see(cordoned);
  EXPECT_EQ(view.takes_no_pods_since(), since);
  EXPECT_EQ(schedulable, 1);
  view.see(node_of("13"));
  EXPECT_EQ(schedulable, 2);
}

TEST_F(NodeViewTest, AForeignBootIdIsFirstALateKubeletAndThenAProblem) {
  view.set_boot_id("boot-2");
  k8s::Node node = node_of("11");
  node.ready = true;
  node.boot_id = "boot-1";
  view.see(node);
  EXPECT_FALSE(view.kubelet_reports_this_boot());
  TimePoint until = TimePoint::max();
  EXPECT_EQ(view.foreign_boot(until)->reason, "NodeNotReady");
  EXPECT_EQ(until, clock.now() + 2min);
  pass(2min);
  until = TimePoint::max();
  EXPECT_EQ(view.foreign_boot(until)->reason, "BootIdForeign");
  EXPECT_EQ(until, TimePoint::max());
  node.resource_version = "12";
  node.boot_id = "boot-2";
  view.see(node);
  EXPECT_TRUE(view.kubelet_reports_this_boot());
  EXPECT_EQ(view.foreign_boot(until), std::nullopt);
}

}  // namespace
}  // namespace haulout::agent
