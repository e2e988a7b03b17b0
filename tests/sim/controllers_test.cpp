#include <fmt/format.h>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

class ControllersTest : public SimTest {
 protected:
  void SetUp() override {
    add_node("n1");
    add_node("n2");
  }
  static Json workload(std::string name, int replicas, std::int64_t grace = 2) {
    return {{"metadata", {{"name", name}, {"namespace", "shop"}}},
            {"spec",
             {{"replicas", replicas},
              {"selector", {{"matchLabels", {{"app", "web"}}}}},
              {"template",
               {{"metadata", {{"labels", {{"app", "web"}}}}},
                {"spec", {{"terminationGracePeriodSeconds", grace}, {"containers", {{{"name", "app"}}}}}}}}}}};
  }
  std::vector<std::string> ready_pods(std::string node = {}) const {
    std::vector<std::string> names;
    for (const Json& pod : cluster.all("pods"))
      if (sim::pod_ready(pod) && !sim::terminating(pod) && (node.empty() || sim::text(pod, "/spec/nodeName") == node))
        names.push_back(sim::name_of(pod));
    return names;
  }
  Json budget_status() const { return cluster.get("poddisruptionbudgets", "shop", "web")["status"]; }
};

TEST_F(ControllersTest, ADeploymentIsSpreadAndComesBack) {
  cluster.create("deployments", workload("web", 4));
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(5s);
    EXPECT_EQ(ready_pods("n1").size(), 2u);
    EXPECT_EQ(ready_pods("n2").size(), 2u);
    cluster.cordon("n1");
    for (const std::string& name : ready_pods("n1")) co_await evict("shop", name);
    co_await pass(10s);
    EXPECT_EQ(ready_pods("n1").size(), 0u);
    EXPECT_EQ(ready_pods("n2").size(), 4u);
    EXPECT_EQ(cluster.all("pods").size(), 4u);
  });
}

TEST_F(ControllersTest, ARollOutIsLeftAsItIs) {
  cluster.create("deployments", workload("web", 4));
  const std::string uid = sim::uid_of(cluster.get("deployments", "shop", "web"));
  const auto add_set = [&](const std::string& name, int replicas) {
    Json set = workload(name, replicas);
    set["metadata"]["ownerReferences"] = {
        {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "web"}, {"uid", uid}, {"controller", true}}};
    cluster.create("replicasets", std::move(set));
  };
  const auto replicas = [&](const std::string& name) {
    return sim::number(cluster.get("replicasets", "shop", name), "/spec/replicas");
  };
  for (const auto& [name, count] : {std::pair("web-1", 0), {"web-2", 3}, {"web-3", 2}}) add_set(name, count);
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(10s);
    EXPECT_EQ(replicas("web-2") * 10 + replicas("web-3"), 32);
    EXPECT_EQ(ready_pods().size(), 5u);
    cluster.patch("replicasets", "shop", "web-3", {{"spec", {{"replicas", 0}}}});
    cluster.patch("deployments", "shop", "web",
                  {{"spec", {{"replicas", 4}}}, {"metadata", {{"labels", {{"a", "b"}}}}}});
    co_await pass(10s);
    EXPECT_EQ(replicas("web-2"), 4) << "though it is not the first by name";
    EXPECT_EQ(cluster.all("replicasets").size(), 3u);
  });
}

TEST_F(ControllersTest, WithoutANodeAPodStaysPendingUntilOneComes) {
  cluster.cordon("n1");
  cluster.cordon("n2");
  cluster.create("replicasets", workload("web", 1));
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(5s);
    EXPECT_EQ(sim::text(sim::condition(cluster.all("pods")[0], "PodScheduled"), "/status"), "False");
    cluster.uncordon("n2");
    co_await pass(5s);
    EXPECT_EQ(ready_pods("n2").size(), 1u);
  });
}

TEST_F(ControllersTest, AStatefulSetReusesANameOnlyWhenItIsFree) {
  Json set = workload("db", 2, 5);
  cluster.create("statefulsets", set);
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(10s);
    EXPECT_EQ(ready_pods(), (std::vector<std::string>{"db-0", "db-1"}));
    const std::string before = uid("shop", "db-0");
    co_await evict("shop", "db-0");
    co_await pass(4s);
    EXPECT_EQ(uid("shop", "db-0"), before) << "still terminating";
    co_await pass(5s);
    EXPECT_EQ(ready_pods(), (std::vector<std::string>{"db-0", "db-1"}));
    EXPECT_NE(uid("shop", "db-0"), before);
  });
}

TEST_F(ControllersTest, ADaemonSetReturnsToItsCordonedNode) {
  cluster.create("daemonsets", workload("agent", 0));
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(5s);
    EXPECT_EQ(ready_pods("n1").size(), 1u);
    EXPECT_EQ(ready_pods("n2").size(), 1u);
    cluster.cordon("n1");
    const std::string gone = ready_pods("n1")[0];
    co_await evict("shop", gone);
    co_await pass(10s);
    EXPECT_EQ(ready_pods("n1").size(), 1u);
    EXPECT_NE(ready_pods("n1")[0], gone);
  });
}

TEST_F(ControllersTest, BarePodsDoNotComeBack) {
  cluster.create("pods", ready_pod("shop", "bare", "n1", 1));
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await evict("shop", "bare");
    co_await pass(60s);
    EXPECT_TRUE(cluster.all("pods").empty());
  });
}

TEST_F(ControllersTest, ACordonBetweenDecisionAndBindingComesTooLate) {
  cluster.cordon("n2");
  cluster.create("pods", pod("shop", "late", ""));
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(50ms);
    cluster.cordon("n1");
    co_await pass(1s);
    EXPECT_EQ(sim::text(cluster.get("pods", "shop", "late"), "/spec/nodeName"), "n1");
  });
}

TEST_F(ControllersTest, ADeletedNamespaceTakesItsPodsAlong) {
  cluster.create("pods", ready_pod("dying", "p", "n1", 5));
  cluster.create("replicasets", workload("web", 1));
  in_world([&]() -> boost::asio::awaitable<void> {
    cluster.terminate_namespace("dying");
    co_await pass(1s);
    EXPECT_TRUE(sim::terminating(cluster.get("pods", "dying", "p")));
    co_await pass(6s);
    EXPECT_TRUE(cluster.get("pods", "dying", "p").is_null());
    EXPECT_TRUE(cluster.get("namespaces", "", "dying").is_null());
  });
}

TEST_F(ControllersTest, PodsOfADeletedNodeAreCollectedAfterFortySeconds) {
  cluster.create("pods", ready_pod("shop", "p", "n1"));
  in_world([&]() -> boost::asio::awaitable<void> {
    cluster.remove("nodes", "", "n1");
    co_await pass(39s);
    EXPECT_FALSE(cluster.get("pods", "shop", "p").is_null());
    co_await pass(2s);
    EXPECT_TRUE(cluster.get("pods", "shop", "p").is_null());
  });
}

// --- disruption arithmetic: 5 replicas, all healthy unless said otherwise ---

struct DisruptionRow {
  Json spec;
  int sick;
  int expected, desired, healthy, allowed;
};

TEST_F(ControllersTest, DisruptionArithmetic) {
  const DisruptionRow table[] = {
      {{{"minAvailable", 3}}, 0, 5, 3, 5, 2},        {{{"minAvailable", 5}}, 0, 5, 5, 5, 0},
      {{{"minAvailable", 0}}, 0, 5, 0, 5, 5},        {{{"minAvailable", "50%"}}, 0, 5, 3, 5, 2},
      {{{"maxUnavailable", 1}}, 0, 5, 4, 5, 1},      {{{"maxUnavailable", 0}}, 0, 5, 5, 5, 0},
      {{{"maxUnavailable", "50%"}}, 0, 5, 2, 5, 3},  {{{"maxUnavailable", 10}}, 0, 5, 0, 5, 5},
      {{{"minAvailable", 3}}, 1, 5, 3, 4, 1},        {{{"minAvailable", 3}}, 3, 5, 3, 2, 0},
      {{{"maxUnavailable", "100%"}}, 5, 5, 0, 0, 0},
  };
  for (const DisruptionRow& row : table) {
    boost::asio::io_context other_context{1};
    sim::VirtualClock other_clock{other_context};
    SeededRng other_rng{1};
    sim::TestCluster other(other_context.get_executor(), other_clock, other_rng);
    Json set = workload("web", 5);
    set["metadata"]["uid"] = "rs";
    other.create("replicasets", set);
    for (int i = 0; i < 5; ++i) {
      Json member = ready_pod("shop", fmt::format("w{}", i), "n1");
      member["metadata"]["ownerReferences"] = {
          {{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"name", "web"}, {"uid", "rs"}, {"controller", true}}};
      if (i < row.sick) member["status"]["conditions"][0]["status"] = "False";
      other.create("pods", member);
    }
    other.create("poddisruptionbudgets", budget("shop", "web", row.spec));
    boost::asio::cancellation_signal stop;
    boost::asio::co_spawn(other_context, other.run(),
                          boost::asio::bind_cancellation_slot(stop.slot(), [](std::exception_ptr) {}));
    other_clock.run(other_clock.now() + 1s);
    const Json status = other.get("poddisruptionbudgets", "shop", "web")["status"];
    EXPECT_EQ(status["expectedPods"], row.expected) << row.spec;
    EXPECT_EQ(status["desiredHealthy"], row.desired) << row.spec;
    EXPECT_EQ(status["currentHealthy"], row.healthy) << row.spec;
    EXPECT_EQ(status["disruptionsAllowed"], row.allowed) << row.spec;
    EXPECT_EQ(status["observedGeneration"], 1) << row.spec;
    EXPECT_EQ(status["conditions"][0]["reason"], row.allowed > 0 ? "SufficientPods" : "InsufficientPods") << row.spec;
    stop.emit(boost::asio::cancellation_type::terminal);
    other_clock.run();
  }
}

TEST_F(ControllersTest, MaxUnavailableOverBarePodsBlocksForEver) {
  cluster.create("pods", ready_pod("shop", "a", "n1"));
  cluster.create("poddisruptionbudgets", budget("shop", "web", {{"maxUnavailable", 1}}));
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(1s);
    EXPECT_EQ(budget_status()["expectedPods"], 0);
    EXPECT_EQ(budget_status()["currentHealthy"], 1);
    EXPECT_EQ(budget_status()["disruptionsAllowed"], 0);
    EXPECT_EQ(budget_status()["observedGeneration"], 1);
  });
}

TEST_F(ControllersTest, AControllerWithoutScaleFailsTheSync) {
  Json odd = ready_pod("shop", "a", "n1");
  odd["metadata"]["ownerReferences"] = {
      {{"apiVersion", "example.com/v1"}, {"kind", "Foo"}, {"name", "f"}, {"uid", "f"}, {"controller", true}}};
  cluster.create("pods", odd);
  cluster.create("poddisruptionbudgets", budget("shop", "web", {{"maxUnavailable", 1}}));
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(1s);
    EXPECT_EQ(budget_status()["conditions"][0]["reason"], "SyncFailed");
    EXPECT_EQ(budget_status()["conditions"][0]["message"], "no matches for kind \"Foo\" in version \"example.com/v1\"");
    EXPECT_FALSE(budget_status().contains("observedGeneration"));
  });
}

}  // namespace
}  // namespace haulout::testing
