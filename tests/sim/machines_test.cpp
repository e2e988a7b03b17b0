// Nodes that reboot, are unreachable, or register again.
#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

class MachinesTest : public SimTest {
 protected:
  void SetUp() override {
    add_node("n1");
    add_node("n2");
    cluster.create("pods", ready_pod("shop", "a", "n1"));
  }
  Json node(std::string name = "n1") const { return cluster.get("nodes", "", name); }
  std::string ready() const { return sim::text(sim::condition(node(), "Ready"), "/status"); }
  std::string boot_id(std::string name = "n1") const { return sim::text(node(name), "/status/nodeInfo/bootID"); }
  bool pod_is_ready() const { return sim::pod_ready(cluster.get("pods", "shop", "a")); }
};

TEST_F(MachinesTest, EveryNodeHasBooted) {
  EXPECT_FALSE(boot_id("n1").empty());
  EXPECT_NE(boot_id("n1"), boot_id("n2"));
  cluster.create("nodes", {{"metadata", {{"name", "n3"}}}, {"status", {{"nodeInfo", {{"bootID", "mine"}}}}}});
  EXPECT_EQ(boot_id("n3"), "mine");
}

TEST_F(MachinesTest, ARebootKeepsThePods) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const std::string before = uid("shop", "a");
    cluster.reboot_node("n1", 90s, "second");
    co_await pass(1s);
    EXPECT_EQ(ready(), "Unknown");
    EXPECT_NE(boot_id(), "second");
    EXPECT_FALSE(pod_is_ready());
    co_await evict("shop", "a");
    co_await pass(60s);
    EXPECT_EQ(uid("shop", "a"), before) << "no kubelet stops it meanwhile";
    co_await pass(29s + 100ms);
    EXPECT_EQ(ready(), "True");
    EXPECT_EQ(boot_id(), "second");
    co_await pass(31s);
    EXPECT_TRUE(cluster.get("pods", "shop", "a").is_null()) << "the eviction goes on after the boot";
  });
}

TEST_F(MachinesTest, PodsAreReadyAgainSomeTimeAfterTheBoot) {
  in_world([&]() -> boost::asio::awaitable<void> {
    cluster.create("pods", pod("shop", "late", "n1"));
    cluster.reboot_node("n1", 90s, "second");
    co_await pass(90s + 500ms);
    EXPECT_EQ(ready(), "True");
    EXPECT_FALSE(pod_is_ready());
    co_await pass(1s);
    EXPECT_TRUE(pod_is_ready());
    EXPECT_TRUE(sim::pod_ready(cluster.get("pods", "shop", "late"))) << "it had not started when the node went down";
  });
}

TEST_F(MachinesTest, OutOfReachIsNoReboot) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const std::string before = boot_id();
    cluster.node_down("n1");
    cluster.create("pods", pod("shop", "b", ""));
    co_await pass(5s);
    EXPECT_EQ(sim::text(cluster.get("pods", "shop", "b"), "/spec/nodeName"), "n2");
    cluster.node_up("n1");
    EXPECT_EQ(ready(), "True");
    EXPECT_EQ(boot_id(), before);
    // The node goes down again before its pods are Ready. They remain not Ready.
    cluster.node_down("n1");
    co_await pass(5s);
    EXPECT_FALSE(pod_is_ready());
    cluster.node_down("unheard of");
    cluster.node_up("unheard of", "x");
    EXPECT_TRUE(node("unheard of").is_null());
  });
}

TEST_F(MachinesTest, ANodeThatRegistersAgainIsAnotherNode) {
  cluster.patch("nodes", "", "n1",
                {{"metadata",
                  {{"labels", {{"haulout.dev/state", "draining"}}}, {"annotations", {{"haulout.dev/record", "{}"}}}}}});
  cluster.cordon("n1");
  const Json before = node();
  cluster.replace_node("n1");
  const Json after = node();
  EXPECT_NE(sim::uid_of(after), sim::uid_of(before));
  EXPECT_EQ(after["metadata"]["labels"], Json({{"kubernetes.io/hostname", "n1"}}));
  EXPECT_FALSE(after["metadata"].contains("annotations"));
  EXPECT_FALSE(sim::flag(after, "/spec/unschedulable"));
  EXPECT_EQ(after["status"], before["status"]);
  EXPECT_FALSE(cluster.get("pods", "shop", "a").is_null());
}

}  // namespace
}  // namespace haulout::testing
