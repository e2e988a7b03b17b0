// How the simulated kubelets stop pods.
#include "k8s/codec.hpp"
#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

class KubeletTest : public SimTest {
 protected:
  void SetUp() override {
    add_node("n1");
    add_node("n2");
  }
};

// A kubelet's status manager handles one pod at a time. If two pods of its node end at once, it reports the second one
// later.
TEST_F(KubeletTest, AKubeletTellsOfOneEndAfterTheOther) {
  cluster.timing().kubelet_report = 15ms;
  std::map<std::string, TimePoint> gone;
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource == "pods" && change.type == sim::ChangeType::deleted) gone[change.key.name] = clock.now();
  });
  for (const char* name : {"a", "b"}) cluster.create("pods", ready_pod("shop", name, "n1", 2));
  cluster.create("pods", ready_pod("shop", "elsewhere", "n2", 2));
  in_world([&]() -> boost::asio::awaitable<void> {
    const TimePoint asked = clock.now();
    for (const char* name : {"a", "b", "elsewhere"}) cluster.delete_gracefully("pods", "shop", name);
    co_await pass(5s);
    EXPECT_EQ(gone["a"] - asked, 2015ms);
    EXPECT_EQ(gone["b"] - asked, 2030ms);
    EXPECT_EQ(gone["elsewhere"] - asked, 2015ms);
  });
}

TEST_F(KubeletTest, WhatIsLoadedOnItsWayOutGoesOnFromThere) {
  struct Row {
    const char* name;
    std::int64_t grace;
    std::chrono::seconds since;
    std::optional<std::chrono::seconds> left;
  };
  cluster.timing().termination_limit = 20s;
  const Row table[] = {
      {"halfway", 40, 15s, 5s},       {"longer than assumed", 40, 25s, 15s}, {"not yet asked", 40, -10s, 30s},
      {"a little late", 40, 50s, 0s}, {"stuck", 40, 110s, std::nullopt},
  };
  std::map<std::string, TimePoint> gone;
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource == "pods" && change.type == sim::ChangeType::deleted) gone[change.key.name] = clock.now();
  });
  const TimePoint loaded = clock.now();
  for (const Row& row : table) {
    Json leaving = ready_pod("shop", row.name, "n1", row.grace);
    const auto end = clock.wall_now() - row.since + std::chrono::seconds(row.grace);
    leaving["metadata"]["deletionTimestamp"] = k8s::format_time(end);
    leaving["metadata"]["deletionGracePeriodSeconds"] = row.grace;
    cluster.create("pods", leaving);
  }
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(10min);
    for (const Row& row : table) {
      EXPECT_EQ(gone.count(row.name), row.left ? 1u : 0u) << row.name;
      if (row.left) EXPECT_EQ(gone[row.name] - loaded, *row.left) << row.name;
    }
  });
}

struct TerminationRow {
  const char* annotation;
  const char* value;
  Duration gone_after;
};

TEST_F(KubeletTest, PodsTerminateAsTheirAnnotationsSay) {
  const TerminationRow table[] = {
      {"none", "", 10s},
      {"sim.haulout.dev/terminates-after", "2s", 2s},
      {"sim.haulout.dev/terminates-after", "1h", 10s},
      {"sim.haulout.dev/terminates-after", "1s500ms", 1500ms},
  };
  in_world([&]() -> boost::asio::awaitable<void> {
    for (const TerminationRow& row : table) {
      Json leaving = ready_pod("shop", "p", "n1", 10);
      leaving["metadata"]["annotations"][row.annotation] = row.value;
      cluster.create("pods", leaving);
      const TimePoint begin = clock.now();
      cluster.delete_gracefully("pods", "shop", "p");
      co_await pass(row.gone_after - 10ms);
      EXPECT_FALSE(cluster.get("pods", "shop", "p").is_null()) << row.value;
      co_await pass(20ms);
      EXPECT_TRUE(cluster.get("pods", "shop", "p").is_null()) << row.value;
      EXPECT_LE(clock.now() - begin, row.gone_after + 20ms);
    }
  });
}

// Since version 1.27, a kubelet that has stopped a pod reports it as Failed before the pod is deleted.
TEST_F(KubeletTest, AStoppedPodHasFailedBeforeItGoes) {
  struct Row {
    const char *name, *phase, *then;
    int exit_code;
  };
  const Row table[] = {{"running", "Running", "Failed", 143},
                       {"never-started", "Pending", "Failed", 137},
                       {"succeeded", "Succeeded", "Succeeded", 0}};
  cluster.stop_kubelet("n1");
  for (const Row& row : table) {
    Json one = ready_pod("shop", row.name, "n1", 5);
    one["status"]["phase"] = row.phase;
    one["metadata"]["finalizers"] = {"example.com/hold"};
    if (row.exit_code == 0)
      one["status"]["containerStatuses"] = {{{"name", "app"}, {"state", {{"terminated", {{"exitCode", 0}}}}}}};
    cluster.create("pods", one);
  }
  in_world([&]() -> boost::asio::awaitable<void> {
    for (const Row& row : table) cluster.delete_gracefully("pods", "shop", row.name);
    cluster.start_kubelet("n1");
    co_await pass(10s);
    for (const Row& row : table) {
      const Json ended = cluster.get("pods", "shop", row.name);
      EXPECT_EQ(sim::text(ended, "/status/phase"), row.then) << row.name;
      EXPECT_EQ(sim::number(ended, "/metadata/deletionGracePeriodSeconds", -1), 0) << row.name;
      for (const Json& container : sim::at(ended, "/status/containerStatuses"))
        EXPECT_EQ(sim::number(container, "/state/terminated/exitCode", -1), row.exit_code) << row.name;
      EXPECT_FALSE(sim::pod_ready(ended)) << row.name;
    }
  });
}

TEST_F(KubeletTest, AStoppedKubeletLeavesItsPodsTerminating) {
  cluster.create("pods", ready_pod("shop", "p", "n1", 2));
  in_world([&]() -> boost::asio::awaitable<void> {
    cluster.stop_kubelet("n1");
    cluster.delete_gracefully("pods", "shop", "p");
    co_await pass(300s);
    EXPECT_TRUE(sim::terminating(cluster.get("pods", "shop", "p")));
    cluster.start_kubelet("n1");
    co_await pass(3s);
    EXPECT_TRUE(cluster.get("pods", "shop", "p").is_null());
  });
}

}  // namespace
}  // namespace haulout::testing
