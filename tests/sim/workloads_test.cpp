// Pods that workload controllers create from real objects: pods of Jobs, templates, names.
#include <fmt/format.h>

#include "k8s/codec.hpp"
#include "sim/workloads.hpp"
#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

class WorkloadsTest : public SimTest {
 protected:
  void SetUp() override {
    add_node("n1");
    add_node("n2");
  }
  static Json owner(const std::string& kind, const std::string& version, const std::string& name) {
    return {{"apiVersion", version}, {"kind", kind}, {"name", name}, {"uid", name}, {"controller", true}};
  }
};

TEST_F(WorkloadsTest, APodOfAJobIsLetGoOnceItHasEnded) {
  struct Row {
    const char* what;
    Json owner;
    Json finalizers;
    bool goes;
  };
  const std::string tracking = "batch.kubernetes.io/job-tracking";
  const Row table[] = {
      {"of a Job", owner("Job", "batch/v1", "j"), {tracking}, true},
      {"held by another, too", owner("Job", "batch/v1", "j"), {tracking, "example.com/hold"}, false},
      {"of another Job", owner("Job", "batch.example.com/v1", "j"), {tracking}, false},
      {"of no Job", owner("ReplicaSet", "apps/v1", "j"), {tracking}, false},
  };
  int next = 0;
  for (const Row& row : table) {
    Json member = ready_pod("shop", fmt::format("p{}", next++), "n1", 5);
    member["metadata"]["ownerReferences"] = Json::array({row.owner});
    member["metadata"]["finalizers"] = row.finalizers;
    cluster.create("pods", member);
  }
  in_world([&]() -> boost::asio::awaitable<void> {
    for (int i = 0; i < next; ++i) co_await evict("shop", fmt::format("p{}", i));
    co_await pass(4s);
    EXPECT_EQ(cluster.all("pods").size(), std::size(table)) << "none while it runs";
    co_await pass(60s);
    for (int i = 0; i < next; ++i)
      EXPECT_EQ(cluster.get("pods", "shop", fmt::format("p{}", i)).is_null(), table[i].goes) << table[i].what;
  });
}

TEST_F(WorkloadsTest, AFinishedPodOfAJobLosesItsFinalizer) {
  Json done = ready_pod("shop", "done", "n1");
  done["metadata"]["ownerReferences"] = Json::array({owner("Job", "batch/v1", "j")});
  done["metadata"]["finalizers"] = {"batch.kubernetes.io/job-tracking"};
  done["status"]["phase"] = "Succeeded";
  cluster.create("pods", done);
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(1s);
    EXPECT_FALSE(sim::has_finalizers(cluster.get("pods", "shop", "done")));
  });
}

Json containers_of(Json resources) {
  return Json::array({{{"name", "main"}, {"resources", std::move(resources)}}});
}

TEST(PodTemplateTest, AContainerRequestsWhatItIsLimitedTo) {
  struct Row {
    Json in_template;
    Json requests;
  };
  const Row table[] = {
      {{{"limits", {{"cpu", "2"}, {"memory", "2Gi"}}}}, {{"cpu", "2"}, {"memory", "2Gi"}}},
      {{{"limits", {{"cpu", "2"}}}, {"requests", {{"cpu", "1"}, {"memory", "1Gi"}}}},
       {{"cpu", "1"}, {"memory", "1Gi"}}},
      {{{"requests", {{"cpu", "1"}}}}, {{"cpu", "1"}}},
      {Json::object(), nullptr},
  };
  for (const Row& row : table) {
    const Json spec = {{"containers", containers_of(row.in_template)},
                       {"initContainers", containers_of(row.in_template)}};
    const Json set = {{"kind", "ReplicaSet"}, {"spec", {{"template", {{"spec", spec}}}}}};
    const Json made = sim::pod_of_template(set, nullptr, "web-1");
    for (const char* path : {"/spec/containers", "/spec/initContainers"})
      EXPECT_EQ(sim::at(sim::at(made, path)[0], "/resources/requests"), row.requests) << row.in_template;
  }
}

TEST(PodTemplateTest, WhatAdmissionAddsIsAsInAPodThatIsThere) {
  const Json set = {{"kind", "ReplicaSet"},
                    {"spec", {{"template", {{"spec", {{"containers", containers_of({})}, {"nodeSelector", {}}}}}}}}};
  Json there = {{"spec",
                 {{"containers", containers_of({{"requests", {{"cpu", "100m"}}}})},
                  {"nodeName", "n1"},
                  {"overhead", {{"cpu", "250m"}}},
                  {"priority", 1000}}}};
  there["spec"]["containers"].push_back({{"name", "injected"}});
  const Json made = sim::pod_of_template(set, there, "web-1");
  for (const char* path : {"/spec/containers", "/spec/overhead", "/spec/priority"})
    EXPECT_EQ(sim::at(made, path), sim::at(there, path)) << path;
  EXPECT_EQ(sim::text(made, "/spec/nodeName"), "");
  EXPECT_TRUE(made["spec"].contains("nodeSelector"));
}

class StatefulSetTest : public WorkloadsTest {
 protected:
  static Json set(int replicas) {
    const Json labels = {{"app", "db"}};
    return {{"metadata", {{"name", "db"}, {"namespace", "shop"}, {"uid", "db"}}},
            {"spec",
             {{"replicas", replicas},
              {"selector", {{"matchLabels", labels}}},
              {"template", {{"metadata", {{"labels", labels}}}, {"spec", {{"containers", containers_of({})}}}}}}}};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const Json& pod : cluster.all("pods")) result.push_back(sim::name_of(pod));
    return result;
  }
};

// The simulated controller gives the next pod the settings of the last one. The last pod is already deleted then,
// because its name is not free before.
TEST_F(StatefulSetTest, TheNextPodAsksForWhatTheLastOneDid) {
  cluster.create("statefulsets", set(1));
  Json first = ready_pod("shop", "db-0", "n1", 1);
  first["metadata"]["ownerReferences"] = Json::array({owner("StatefulSet", "apps/v1", "db")});
  first["spec"]["priority"] = 1000;
  cluster.create("pods", first);
  const std::string before = uid("shop", "db-0");
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await evict("shop", "db-0");
    co_await pass(10s);
    const Json next = cluster.get("pods", "shop", "db-0");
    EXPECT_NE(sim::uid_of(next), before);
    EXPECT_EQ(sim::number(next, "/spec/priority"), 1000);
  });
}

TEST_F(StatefulSetTest, OrdinalsBeginWhereItSays) {
  Json from_five = set(2);
  from_five["spec"]["ordinals"] = {{"start", 5}};
  cluster.create("statefulsets", from_five);
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(10s);
    EXPECT_EQ(names(), (std::vector<std::string>{"db-5", "db-6"}));
  });
}

// The controller creates the next ordinal only when the lower one has been Ready for minReadySeconds. A budget counts a
// pod as soon as it is Ready.
TEST_F(StatefulSetTest, TheNextOrdinalWaitsUntilThisOneIsAvailable) {
  struct Row {
    const char* what;
    Json spec;
    Duration second_at_least, second_at_most;
  };
  const Row table[] = {
      {"nothing asked for", Json::object(), 0s, 4s},
      {"fifteen seconds", {{"minReadySeconds", 15}}, 15s, 19s},
      {"all at once", {{"minReadySeconds", 15}, {"podManagementPolicy", "Parallel"}}, 0s, 1s},
      {"less than nothing", {{"minReadySeconds", -5}}, 0s, 4s},
  };
  for (const Row& row : table) {
    cluster.remove("statefulsets", "shop", "db");
    for (const std::string& name : names()) cluster.remove("pods", "shop", name);
    Json wanted = set(2);
    wanted["spec"].update(row.spec);
    cluster.create("statefulsets", wanted);
    in_world([&]() -> boost::asio::awaitable<void> {
      const TimePoint began = clock.now();
      while (cluster.get("pods", "shop", "db-1").is_null() && clock.now() - began < 60s) co_await pass(100ms);
      EXPECT_GE(clock.now() - began, row.second_at_least) << row.what;
      EXPECT_LE(clock.now() - began, row.second_at_most) << row.what;
    });
  }
}

TEST_F(StatefulSetTest, APodThatHasBeenReadyForLongHoldsNobodyUp) {
  Json wanted = set(2);
  wanted["spec"]["minReadySeconds"] = 60;
  cluster.create("statefulsets", wanted);
  Json first = ready_pod("shop", "db-0", "n1", 1);
  first["metadata"]["ownerReferences"] = Json::array({owner("StatefulSet", "apps/v1", "db")});
  first["status"]["conditions"][0]["lastTransitionTime"] = k8s::format_time(clock.wall_now() - 61s);
  cluster.create("pods", first);
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(1s);
    EXPECT_FALSE(cluster.get("pods", "shop", "db-1").is_null());
  });
}

TEST_F(StatefulSetTest, EachPodHasItsOwnClaims) {
  Json with_claims = set(2);
  with_claims["spec"]["volumeClaimTemplates"] = {{{"metadata", {{"name", "data"}}}}, {{"metadata", {{"name", "log"}}}}};
  with_claims["spec"]["template"]["spec"]["volumes"] = {{{"name", "data"}, {"emptyDir", Json::object()}}};
  cluster.create("statefulsets", with_claims);
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(10s);
    EXPECT_EQ(sim::claims_of(cluster.get("pods", "shop", "db-1")), (std::vector<std::string>{"data-db-1", "log-db-1"}));
    EXPECT_EQ(cluster.get("pods", "shop", "db-1")["spec"]["volumes"].size(), 2u);
  });
}

}  // namespace
}  // namespace haulout::testing
