// Evictions under a PodDisruptionBudget: the answers of the server, and how much time and budget an eviction costs.
#include <fmt/format.h>

#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

class BudgetTest : public SimTest {
 public:
  void SetUp() override { add_node("n1"); }
  // Returns the answer's meaning in one line: "201", "429 <cause> [retry-after]", "409 Pod".
  boost::asio::awaitable<std::string> outcome(std::string name, Json options = Json::object()) {
    const auto response = co_await evict("shop", name, options);
    const Json body = Json::parse(response.body);
    std::string result = std::to_string(response.status);
    if (response.status == 429) result += " " + body["details"]["causes"][0]["message"].get<std::string>();
    if (response.status == 409) result += " " + sim::text(body, "/details/kind");
    if (const auto after = response.headers.find("Retry-After")) result += fmt::format(" [{}]", *after);
    co_return result;
  }
};

TEST_F(BudgetTest, ClosedBudgetAnswersByteForByte) {
  cluster.create("pods", ready_pod("shop", "a", "n1"));
  cluster.create("poddisruptionbudgets", budget("shop", "web", {{"minAvailable", 1}}));
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(1s);
    const auto response = co_await evict("shop", "a");
    EXPECT_EQ(
        line(response),
        R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Cannot evict pod as it )"
        R"(would violate the pod's disruption budget.","reason":"TooManyRequests","details":{"causes":[{"reason":)"
        R"("DisruptionBudget","message":"The disruption budget web needs 1 healthy pods and has 1 currently"}]},)"
        R"("code":429})");
    EXPECT_FALSE(response.headers.find("Retry-After"));
    // If the budget is exhausted, the server does not check the UID precondition.
    const Json options = {{"preconditions", {{"uid", "0000"}}}};
    const std::string wrong_uid = co_await outcome("a", options);
    EXPECT_EQ(wrong_uid, "429 The disruption budget web needs 1 healthy pods and has 1 currently");
  });
}

TEST_F(BudgetTest, NeverSyncedBudgetIsStillProcessed) {
  cluster.stop_disruption_controller();
  cluster.create("pods", ready_pod("shop", "a", "n1"));
  cluster.create("poddisruptionbudgets", budget("shop", "web", {{"minAvailable", 0}}));
  in_world([&]() -> boost::asio::awaitable<void> {
    const std::string stopped = co_await outcome("a");
    EXPECT_EQ(stopped, "429 The disruption budget web is still being processed by the server. [10]");
    cluster.start_disruption_controller();
    co_await pass(1s);
    const std::string open = co_await outcome("a");
    EXPECT_EQ(open, "201");
  });
}

// The controller finds the pods of a budget only once, and follows their changes after that.
TEST_F(BudgetTest, TheStatusCountsThePodsThatTheSelectorMatchesNow) {
  for (const char* name : {"a", "b", "c"}) cluster.create("pods", ready_pod("shop", name, "n1"));
  cluster.create("poddisruptionbudgets", budget("shop", "web", {{"minAvailable", 1}}));
  const auto counts = [&] {
    const Json status = cluster.get("poddisruptionbudgets", "shop", "web")["status"];
    return std::pair(status.value("expectedPods", -1), status.value("currentHealthy", -1));
  };
  const auto relabel = [&](const char* pod, const char* app) {
    cluster.patch("pods", "shop", pod, {{"metadata", {{"labels", {{"app", app}}}}}});
  };
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(1s);
    EXPECT_EQ(counts(), std::pair(3, 3));
    relabel("a", "other");
    co_await pass(1s);
    EXPECT_EQ(counts(), std::pair(2, 2)) << "a pod has left";
    relabel("a", "web");
    cluster.patch("pods", "shop", "b", {{"status", {{"conditions", {{{"type", "Ready"}, {"status", "False"}}}}}}});
    co_await pass(1s);
    EXPECT_EQ(counts(), std::pair(3, 2)) << "a pod has come back, another one is not Ready";
    cluster.remove("pods", "shop", "c");
    co_await pass(1s);
    EXPECT_EQ(counts(), std::pair(2, 1)) << "a pod is deleted";
    cluster.patch("poddisruptionbudgets", "shop", "web", {{"spec", {{"selector", {{"matchLabels", {{"app", "x"}}}}}}}});
    co_await pass(1s);
    EXPECT_EQ(counts(), std::pair(0, 0)) << "the selector has changed";
    relabel("b", "x");
    relabel("a", "x");
    co_await pass(1s);
    EXPECT_EQ(counts(), std::pair(2, 1));
    cluster.remove("poddisruptionbudgets", "shop", "web");
    relabel("b", "web");
    Json again = budget("shop", "web", {{"minAvailable", 1}});
    again["spec"]["selector"]["matchLabels"]["app"] = "x";
    cluster.create("poddisruptionbudgets", again);
    co_await pass(1s);
    EXPECT_EQ(counts(), std::pair(1, 1)) << "the budget is a new one";
  });
}

TEST_F(BudgetTest, CausesByCondition) {
  cluster.stop_disruption_controller();
  cluster.create("pods", ready_pod("shop", "a", "n1"));
  cluster.create("poddisruptionbudgets", budget("shop", "b", {{"minAvailable", 1}}));
  const auto status = [&](Json conditions, int healthy, int needed) {
    cluster.patch("poddisruptionbudgets", "shop", "b",
                  {{"status",
                    {{"observedGeneration", 1},
                     {"disruptionsAllowed", 0},
                     {"currentHealthy", healthy},
                     {"desiredHealthy", needed},
                     {"conditions", conditions}}}});
  };
  const auto allowed = [](const char* reason, const char* message) {
    return Json::array(
        {{{"type", "DisruptionAllowed"}, {"status", "False"}, {"reason", reason}, {"message", message}}});
  };
  in_world([&]() -> boost::asio::awaitable<void> {
    status(allowed("InsufficientPods", ""), 1, 2);
    EXPECT_EQ(co_await outcome("a"), "429 The disruption budget b needs 2 healthy pods and has 1 currently");
    status(allowed("InsufficientPods", ""), 1, 0);
    EXPECT_EQ(co_await outcome("a"), "429 The disruption budget b does not allow evicting pods currently");
    status(Json::array(), 1, 1);
    EXPECT_EQ(co_await outcome("a"), "429 The disruption budget b does not allow evicting pods currently");
    status(allowed("SyncFailed", "boom happened"), 1, 1);
    EXPECT_EQ(co_await outcome("a"),
              "429 The disruption budget b does not allow evicting pods currently because it failed sync: boom "
              "happened");
    status(allowed("Weird", "boom happened"), 1, 1);
    EXPECT_EQ(co_await outcome("a"),
              "429 The disruption budget b does not allow evicting pods currently (Weird): boom happened");
  });
}

TEST_F(BudgetTest, TwoBudgetsAreRefusedWithoutReason) {
  cluster.create("pods", ready_pod("shop", "a", "n1"));
  cluster.create("poddisruptionbudgets", budget("shop", "one", {{"minAvailable", 0}}));
  cluster.create("poddisruptionbudgets", budget("shop", "two", {{"minAvailable", 0}}));
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto response = co_await evict("shop", "a");
    EXPECT_EQ(
        line(response),
        R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"This pod has more than )"
        R"(one PodDisruptionBudget, which the eviction subresource does not support.","code":500})");
  });
}

struct UnhealthyRow {
  const char* policy;
  int healthy_others;
  int min_available;
  const char* outcome;
};

TEST_F(BudgetTest, UnhealthyPods) {
  const UnhealthyRow table[] = {
      {"", 1, 1, "201"},
      {"IfHealthyBudget", 1, 1, "201"},
      {"", 0, 1, "429 The disruption budget web needs 1 healthy pods and has 0 currently"},
      {"AlwaysAllow", 0, 1, "201"},
  };
  int index = 0;
  for (const UnhealthyRow& row : table) {
    const std::string ns = fmt::format("shop{}", index++);
    Json sick = ready_pod(ns, "sick", "n1");
    sick["status"]["conditions"][0]["status"] = "False";
    cluster.create("pods", sick);
    for (int i = 0; i < row.healthy_others; ++i) cluster.create("pods", ready_pod(ns, fmt::format("p{}", i), "n1"));
    Json spec = {{"minAvailable", row.min_available}};
    if (*row.policy) spec["unhealthyPodEvictionPolicy"] = row.policy;
    cluster.create("poddisruptionbudgets", budget(ns, "web", spec));
  }
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(1s);
    index = 0;
    for (const UnhealthyRow& row : table) {
      const std::string ns = fmt::format("shop{}", index++);
      const auto budget_before = cluster.get("poddisruptionbudgets", ns, "web");
      const Json wrong = {{"preconditions", {{"uid", "0000"}}}};
      const auto with_wrong_uid = co_await evict(ns, "sick", wrong);
      EXPECT_EQ(with_wrong_uid.status, 429) << ns;
      const auto response = co_await evict(ns, "sick");
      const Json body = Json::parse(response.body);
      std::string result = std::to_string(response.status);
      if (response.status == 429) result += " " + body["details"]["causes"][0]["message"].get<std::string>();
      EXPECT_EQ(result, row.outcome) << ns;
      EXPECT_EQ(cluster.get("poddisruptionbudgets", ns, "web"), budget_before) << "the budget is not touched";
    }
  });
}

TEST_F(BudgetTest, PodsThatNeedNoBudget) {
  for (const char* phase : {"Pending", "Succeeded", "Failed"}) {
    Json other = pod("shop", phase, "n1");
    other["metadata"]["annotations"]["sim.haulout.dev/starts-after"] = "1h";
    other["status"]["phase"] = phase;
    cluster.create("pods", other);
  }
  cluster.create("pods", ready_pod("shop", "leaving", "n1"));
  cluster.create("poddisruptionbudgets", budget("shop", "web", {{"minAvailable", 10}}));
  in_world([&]() -> boost::asio::awaitable<void> {
    cluster.delete_gracefully("pods", "shop", "leaving");
    co_await pass(1s);
    for (const char* name : {"Pending", "Succeeded", "Failed", "leaving"})
      EXPECT_EQ(co_await outcome(name), "201") << name;
  });
}

TEST_F(BudgetTest, AWrongUidBurnsOneDisruptionForTwoMinutes) {
  cluster.create("pods", ready_pod("shop", "w1", "n1"));
  cluster.create("pods", ready_pod("shop", "w2", "n1"));
  cluster.create("poddisruptionbudgets", budget("shop", "web", {{"minAvailable", 1}}));
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(1s);
    const Json options = {{"preconditions", {{"uid", "0000"}}}};
    EXPECT_EQ(co_await outcome("w1", options), "409 Pod");
    Json after = cluster.get("poddisruptionbudgets", "shop", "web");
    EXPECT_EQ(sim::number(after, "/status/disruptionsAllowed"), 0);
    EXPECT_TRUE(sim::at(after, "/status/disruptedPods").contains("w1"));
    co_await pass(119s);
    EXPECT_EQ(sim::number(cluster.get("poddisruptionbudgets", "shop", "web"), "/status/disruptionsAllowed"), 0);
    co_await pass(3s);
    after = cluster.get("poddisruptionbudgets", "shop", "web");
    EXPECT_EQ(sim::number(after, "/status/disruptionsAllowed"), 1);
    EXPECT_FALSE(after["status"].contains("disruptedPods"));
  });
}

TEST_F(BudgetTest, ABudgetThatIsAlwaysRewrittenConflictsAfterTenSeconds) {
  cluster.create("pods", ready_pod("shop", "a", "n1"));
  cluster.create("poddisruptionbudgets", budget("shop", "b", {{"minAvailable", 0}}));
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(1s);
    cluster.switches().budget_writes_conflict = true;
    const auto response = co_await evict("shop", "a");
    EXPECT_EQ(line(response),
              R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Operation cannot be )"
              R"(fulfilled on poddisruptionbudgets.policy \"b\": the object has been modified; please apply your )"
              R"(changes to the latest version and try again","reason":"Conflict","details":{"name":"b","group":)"
              R"("policy","kind":"poddisruptionbudgets"},"code":409})");
    EXPECT_GT(elapsed(), 10s);
    EXPECT_LT(elapsed(), 12s);
  });
}

TEST_F(BudgetTest, EvictionsOfOneBudgetInStepCostNothingTogetherHalfSeconds) {
  for (int i = 0; i < 6; ++i) cluster.create("pods", ready_pod("shop", fmt::format("w{}", i), "n1"));
  cluster.create("poddisruptionbudgets", budget("shop", "web", {{"minAvailable", 0}}));
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(1s);
    TimePoint begin = clock.now();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await outcome(fmt::format("w{}", i)), "201");
    EXPECT_LT(clock.now() - begin, 100ms);
    begin = clock.now();
    cluster.timing().api_latency_jitter = {};
    co_await with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      for (int i = 3; i < 6; ++i)
        group.spawn([](BudgetTest* test, int number) -> boost::asio::awaitable<void> {
          const std::string result = co_await test->outcome(fmt::format("w{}", number));
          EXPECT_EQ(result, "201");
        }(this, i));
      co_await group.join();
    });
    EXPECT_GE(clock.now() - begin, 500ms);
  });
}

}  // namespace
}  // namespace haulout::testing
