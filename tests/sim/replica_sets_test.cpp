// Pods that a ReplicaSet releases and adopts because their labels change, the surplus pods that it deletes, and quotas
// that refuse its pods. Also the patches that change those labels.
#include <fmt/format.h>

#include "k8s/codec.hpp"
#include "sim/replica_sets.hpp"
#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

constexpr const char* hash_label = "pod-template-hash";

class ReplicaSetTest : public SimTest {
 protected:
  void SetUp() override {
    add_node("n1");
    add_node("n2");
  }

  // Adds a Deployment with its ReplicaSet and pods w0, w1, … on node n1. All pods are Ready for an hour.
  void add_web(int replicas) {
    const Json labels = {{"app", "web"}, {hash_label, "6d4b9"}};
    const Json spec = {{"terminationGracePeriodSeconds", 1}, {"containers", {{{"name", "app"}}}}};
    Json above = {{"metadata", {{"name", "web"}, {"namespace", "shop"}, {"uid", "uid-web"}}},
                  {"spec", {{"replicas", replicas}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}}};
    cluster.create("deployments", above);
    Json set = {{"metadata", {{"name", "web-6d4b9"}, {"namespace", "shop"}, {"uid", "uid-set"}}},
                {"spec",
                 {{"replicas", replicas},
                  {"selector", {{"matchLabels", labels}}},
                  {"template", {{"metadata", {{"labels", labels}}}, {"spec", spec}}}}}};
    set["metadata"]["ownerReferences"] = Json::array({owner("Deployment", "web", "uid-web")});
    cluster.create("replicasets", set);
    for (int i = 0; i < replicas; ++i) add_pod(fmt::format("w{}", i), labels, true);
  }
  void add_pod(const std::string& name, const Json& labels, bool owned, Duration ready_for = 1h) {
    Json member = ready_pod("shop", name, "n1", 1);
    member["metadata"]["labels"] = labels;
    if (owned) member["metadata"]["ownerReferences"] = Json::array({owner("ReplicaSet", "web-6d4b9", "uid-set")});
    member["status"]["conditions"][0]["lastTransitionTime"] =
        k8s::format_time(clock.wall_now() - std::chrono::duration_cast<std::chrono::microseconds>(ready_for));
    cluster.create("pods", member);
  }
  static Json owner(const char* kind, const char* name, const char* uid) {
    return {{"apiVersion", "apps/v1"}, {"kind", kind}, {"name", name}, {"uid", uid}, {"controller", true}};
  }
  static Json labels() { return {{"app", "web"}, {hash_label, "6d4b9"}}; }

  Json pod_now(const std::string& name) const { return cluster.get("pods", "shop", name); }
  std::string owner_of(const std::string& name) const { return sim::text(sim::controller_of(pod_now(name)), "/uid"); }
  void relabel(const std::string& name, Json hash) {
    cluster.patch("pods", "shop", name, {{"metadata", {{"labels", {{hash_label, std::move(hash)}}}}}});
  }
  // Returns the names of the pods that are not terminating.
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const Json& pod : cluster.all("pods"))
      if (!sim::terminating(pod)) result.push_back(sim::name_of(pod));
    return result;
  }
  boost::asio::awaitable<http::Response> patch(const std::string& name, const Json& body) {
    return ask("PATCH", "/api/v1/namespaces/shop/pods/" + name, body.dump(), "application/merge-patch+json");
  }
};

TEST_F(ReplicaSetTest, APodWithoutTheLabelIsReleasedAndReplaced) {
  add_web(2);
  const Json before = pod_now("w0");
  in_world([&]() -> boost::asio::awaitable<void> {
    relabel("w0", nullptr);
    EXPECT_EQ(owner_of("w0"), "uid-set") << "the controller has not looked yet";
    co_await pass(10s);
    EXPECT_FALSE(pod_now("w0")["metadata"].contains("ownerReferences"));
    EXPECT_EQ(pod_now("w0")["spec"], before["spec"]);
    EXPECT_EQ(pod_now("w0")["status"], before["status"]);
    EXPECT_EQ(names().size(), 3u);
    EXPECT_EQ(owner_of("w1"), "uid-set");
    std::size_t ready = 0;
    for (const Json& pod : cluster.all("pods")) {
      ready += sim::pod_ready(pod);
      if (sim::name_of(pod) != "w0") EXPECT_EQ(sim::label(pod, hash_label), "6d4b9");
    }
    EXPECT_EQ(ready, 3u);
  });
}

TEST_F(ReplicaSetTest, APodThatIsGivenBackDisplacesTheReplacementThatIsNotReady) {
  add_web(1);
  in_world([&]() -> boost::asio::awaitable<void> {
    relabel("w0", nullptr);
    co_await pass(500ms);
    EXPECT_EQ(names().size(), 2u);
    relabel("w0", "6d4b9");
    co_await pass(10s);
    EXPECT_EQ(names(), std::vector<std::string>{"w0"});
    EXPECT_EQ(owner_of("w0"), "uid-set");
  });
}

TEST_F(ReplicaSetTest, OnlyPodsThatHaveChangedAreExaminedAgain) {
  constexpr std::uint64_t pods = 5;
  add_web(pods);
  const auto claims = [this]() -> const sim::Claims& { return cluster.parts().workloads.claims(); };
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(5s);
    const std::uint64_t before = claims().examined();
    EXPECT_GE(before, pods);
    cluster.parts().workloads.resync();
    co_await pass(5s);
    EXPECT_EQ(claims().examined(), before) << "nothing has changed";
    cluster.patch("pods", "shop", "w0", {{"metadata", {{"annotations", {{"note", "changed"}}}}}});
    co_await pass(5s);
    EXPECT_EQ(claims().examined(), before + 1) << "one pod has changed";
    cluster.patch("replicasets", "shop", "web-6d4b9", {{"metadata", {{"annotations", {{"note", "changed"}}}}}});
    co_await pass(5s);
    EXPECT_EQ(claims().examined(), before + 1 + pods) << "the selector may be another one";
  });
}

TEST_F(ReplicaSetTest, OnlyItsOwnKindOfPodIsAdopted) {
  add_web(1);
  Json foreign = labels();
  foreign["app"] = "other";
  add_pod("other", foreign, false);
  add_pod("more", labels(), false, 5s);
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(10s);
    EXPECT_EQ(owner_of("other"), "");
    EXPECT_EQ(names(), (std::vector<std::string>{"other", "w0"})) << "the adopted pod is one too many, and the younger";
  });
}

TEST_F(ReplicaSetTest, ATerminatingPodIsNeitherReleasedNorAdopted) {
  add_web(1);
  in_world([&]() -> boost::asio::awaitable<void> {
    cluster.patch("pods", "shop", "w0", {{"metadata", {{"finalizers", {"example.com/hold"}}}}});
    cluster.delete_gracefully("pods", "shop", "w0");
    relabel("w0", nullptr);
    co_await pass(5s);
    EXPECT_EQ(owner_of("w0"), "uid-set");
    add_pod("stray", {{"app", "web"}}, false);
    cluster.patch("pods", "shop", "stray", {{"metadata", {{"finalizers", {"example.com/hold"}}}}});
    cluster.delete_gracefully("pods", "shop", "stray");
    relabel("stray", "6d4b9");
    co_await pass(5s);
    EXPECT_EQ(owner_of("stray"), "");
  });
}

TEST_F(ReplicaSetTest, ASetThatDoesNotSelectItsOwnTemplateClaimsNothing) {
  cluster.create("replicasets", {{"metadata", {{"name", "web-6d4b9"}, {"namespace", "shop"}, {"uid", "uid-set"}}},
                                 {"spec", {{"replicas", 1}, {"selector", {{"matchLabels", labels()}}}}}});
  add_pod("w0", {{"app", "web"}}, true);
  add_pod("stray", labels(), false);
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(10s);
    EXPECT_EQ(names(), (std::vector<std::string>{"stray", "w0"}));
    EXPECT_EQ(owner_of("w0"), "uid-set");
    EXPECT_EQ(owner_of("stray"), "");
  });
}

TEST_F(ReplicaSetTest, SurplusPodsAreDeletedInTheControllersOrder) {
  struct Row {
    const char* what;
    Json patch;
  };
  // Each pod is deleted before those in the rows below it.
  const Row table[] = {
      {"unassigned", {{"spec", {{"nodeName", nullptr}}}}},
      {"pending", {{"status", {{"phase", "Pending"}}}}},
      {"not Ready", {{"status", {{"conditions", {{{"type", "Ready"}, {"status", "False"}}}}}}}},
      {"cheap", {{"metadata", {{"annotations", {{"controller.kubernetes.io/pod-deletion-cost", "-5"}}}}}}},
      {"doubled up", Json::object()},
      {"doubled up, too", Json::object()},
      {"young", {{"spec", {{"nodeName", "n2"}}}}},
      {"old", {{"spec", {{"nodeName", "n3"}}}}},
  };
  std::vector<sim::Object> pods;
  std::vector<std::string> expected;
  int number = 9;
  for (const Row& row : table) {
    const std::string name = fmt::format("p{}", number--);
    add_pod(name, labels(), true, row.what == std::string("young") ? 5s : 1h);
    cluster.patch("pods", "shop", name, row.patch);
    // The UID decides only between the two pods that are alike otherwise.
    cluster.patch("pods", "shop", name, {{"metadata", {{"uid", fmt::format("{}", (number + 6) % 10)}}}});
    pods.push_back(std::make_shared<const Json>(pod_now(name)));
    expected.push_back(name);
  }
  std::reverse(pods.begin(), pods.end());
  sim::sort_for_deletion(pods, pods, clock.wall_now());
  std::vector<std::string> sorted;
  for (const sim::Object& pod : pods) sorted.push_back(sim::name_of(*pod));
  EXPECT_EQ(sorted, expected);
}

// Between two pods that are alike otherwise, the one on the node with more pods of the Deployment is deleted, whichever
// of its ReplicaSets these belong to.
TEST_F(ReplicaSetTest, PodsOfAllReplicaSetsOfTheDeploymentCountForTheirNode) {
  add_web(1);
  Json older = cluster.get("replicasets", "shop", "web-6d4b9");
  older["metadata"]["name"] = "web-old";
  older["metadata"]["uid"] = "uid-old";
  older["metadata"].erase("resourceVersion");
  for (const char* path : {"/spec/selector/matchLabels", "/spec/template/metadata/labels"})
    older[Json::json_pointer(path)][hash_label] = "old";
  Json of_older = labels();
  of_older[hash_label] = "old";
  for (const bool counts : {true, false}) {
    for (const char* name : {"w0", "w1", "o0"}) cluster.remove("pods", "shop", name);
    if (counts) cluster.create("replicasets", older);
    if (!counts) cluster.remove("replicasets", "shop", "web-old");
    for (const char* name : {"w0", "w1"}) {
      add_pod(name, labels(), true);
      // By its UID, w0 is the first one.
      cluster.patch("pods", "shop", name, {{"metadata", {{"uid", name == std::string("w0") ? "a" : "b"}}}});
    }
    cluster.patch("pods", "shop", "w0", {{"spec", {{"nodeName", "n2"}}}});
    add_pod("o0", of_older, false);
    cluster.patch("pods", "shop", "o0",
                  {{"metadata", {{"ownerReferences", {owner("ReplicaSet", "web-old", "uid-old")}}}}});
    const Json set = cluster.get("replicasets", "shop", "web-6d4b9");
    std::vector<sim::Object> pods = cluster.store().list("pods", "shop", sim::By::controller, "uid-set");
    sim::sort_for_deletion(pods, sim::related_pods(cluster.store(), set), clock.wall_now());
    ASSERT_EQ(pods.size(), 2u);
    EXPECT_EQ(sim::name_of(*pods[0]), counts ? "w1" : "w0");
  }
}

TEST_F(ReplicaSetTest, ADeploymentMayWantTheHashOfItsTemplate) {
  Json wanted = {{"metadata", {{"name", "web"}, {"namespace", "shop"}}},
                 {"spec",
                  {{"replicas", 1},
                   {"selector", {{"matchLabels", {{"app", "web"}}}}},
                   {"template", {{"metadata", {{"labels", {{"app", "web"}}}}}, {"spec", {{"containers", {}}}}}}}}};
  cluster.create("deployments", wanted);
  wanted["metadata"]["name"] = "hashed";
  wanted["metadata"]["annotations"] = {{"sim.haulout.dev/template-hash", "true"}};
  cluster.create("deployments", wanted);
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(10s);
    EXPECT_EQ(cluster.all("pods").size(), 2u);
    for (const Json& pod : cluster.all("pods")) {
      const std::string set = sim::text(sim::controller_of(pod), "/name");
      const std::string hash = sim::label(pod, hash_label).value_or("");
      const bool hashed = set.starts_with("hashed-");
      EXPECT_EQ(hash, hashed ? set.substr(7) : "");
      const Json selector = cluster.get("replicasets", "shop", set)["spec"]["selector"]["matchLabels"];
      EXPECT_EQ(selector.value(hash_label, ""), hash);
    }
  });
}

TEST_F(ReplicaSetTest, AQuotaRefusesTheReplacementUntilThereIsRoom) {
  struct Row {
    const char* what;
    Json spec;
    bool on;
    bool refused;
  };
  const Row table[] = {
      {"pods", {{"hard", {{"pods", "1"}}}}, true, true},
      {"count/pods", {{"hard", {{"count/pods", 1}}}}, true, true},
      {"room", {{"hard", {{"pods", "2"}}}}, true, false},
      {"another limit", {{"hard", {{"services", "1"}}}}, true, false},
      {"a scope", {{"hard", {{"pods", "1"}}}, {"scopes", {"BestEffort"}}}, true, false},
      {"not played", {{"hard", {{"pods", "1"}}}}, false, false},
  };
  add_web(1);
  for (const Row& row : table) {
    cluster.switches().quotas = row.on;
    cluster.create("resourcequotas", {{"metadata", {{"name", "few"}, {"namespace", "shop"}}}, {"spec", row.spec}});
    in_world([&]() -> boost::asio::awaitable<void> {
      const std::string name = names().front();
      relabel(name, nullptr);
      co_await pass(20s);
      EXPECT_EQ(names().size(), row.refused ? 1u : 2u) << row.what;
      EXPECT_EQ(owner_of(name), "") << row.what;
      cluster.patch("resourcequotas", "shop", "few", {{"spec", {{"hard", {{"pods", "9"}, {"count/pods", 9}}}}}});
      co_await pass(60s);
      EXPECT_EQ(names().size(), 2u) << row.what;
      cluster.remove("pods", "shop", name);
      cluster.remove("resourcequotas", "shop", "few");
    });
  }
}

// A pod that is given back makes the refused replacement needless. When it is released once more, the controller tries
// at once again, and not after a pause of minutes.
TEST_F(ReplicaSetTest, ASyncThatNeedsNoPodEndsThePausesAfterRefusals) {
  add_web(1);
  cluster.switches().quotas = true;
  cluster.create("resourcequotas",
                 {{"metadata", {{"name", "few"}, {"namespace", "shop"}}}, {"spec", {{"hard", {{"pods", "1"}}}}}});
  in_world([&]() -> boost::asio::awaitable<void> {
    relabel("w0", nullptr);
    co_await pass(5min);
    relabel("w0", "6d4b9");
    co_await pass(10s);
    EXPECT_EQ(owner_of("w0"), "uid-set");
    relabel("w0", nullptr);
    co_await pass(1s);
    cluster.remove("resourcequotas", "shop", "few");
    co_await pass(10s);
    EXPECT_EQ(names().size(), 2u);
  });
}

// A finished pod does not count for `pods`, but for `count/pods`.
TEST_F(ReplicaSetTest, TheTwoLimitsOfAQuotaCountDifferentPods) {
  Json done = ready_pod("shop", "done", "n1");
  done["status"] = {{"phase", "Succeeded"}};
  cluster.create("pods", done);
  for (const auto& [limit, refuses] : {std::pair("pods", false), {"count/pods", true}}) {
    cluster.create("resourcequotas",
                   {{"metadata", {{"name", "few"}, {"namespace", "shop"}}}, {"spec", {{"hard", {{limit, "1"}}}}}});
    EXPECT_EQ(sim::quota_refuses_pod(cluster.store(), "shop"), refuses) << limit;
    cluster.remove("resourcequotas", "shop", "few");
  }
}

TEST_F(ReplicaSetTest, OnePatchReleasesAPodAndTwoGiveItBack) {
  add_web(1);
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto body = [&](const Json& changes) {
      Json metadata = {{"uid", uid("shop", "w0")},
                       {"resourceVersion", sim::text(pod_now("w0"), "/metadata/resourceVersion")}};
      metadata.update(changes);
      return Json{{"metadata", metadata}};
    };
    const Json release = {{"labels", {{hash_label, nullptr}}}, {"annotations", {{"haulout.dev/surged", "{}"}}}};
    const Json label_back = {{"labels", {{hash_label, "6d4b9"}}}};
    const Json mark_off = {{"annotations", {{"haulout.dev/surged", nullptr}}}};
    const auto revision = cluster.revision();
    EXPECT_EQ((co_await patch("w0", body(release))).status, 200);
    EXPECT_EQ(cluster.revision(), revision + 1) << "one write";
    EXPECT_EQ(pod_now("w0")["metadata"]["labels"], Json({{"app", "web"}}));
    EXPECT_EQ(sim::annotation(pod_now("w0"), "haulout.dev/surged"), "{}");
    co_await pass(20s);
    EXPECT_EQ(owner_of("w0"), "");
    EXPECT_EQ((co_await patch("w0", body(label_back))).status, 200);
    EXPECT_EQ(pod_now("w0")["metadata"]["labels"], labels());
    EXPECT_EQ(sim::annotation(pod_now("w0"), "haulout.dev/surged"), "{}");
    co_await pass(20s);
    EXPECT_EQ(owner_of("w0"), "uid-set");
    EXPECT_EQ(names(), std::vector<std::string>{"w0"}) << "it is Ready for longer than the replacement";
    EXPECT_EQ((co_await patch("w0", body(mark_off))).status, 200);
    EXPECT_FALSE(pod_now("w0")["metadata"].contains("annotations"));
    co_await pass(20s);
    EXPECT_EQ(names(), std::vector<std::string>{"w0"});
  });
}

TEST_F(ReplicaSetTest, APatchHasPreconditions) {
  struct Row {
    const char* what;
    Json metadata;
    int status;
    const char* reason;
  };
  const Row table[] = {
      {"another UID", {{"uid", "0000"}}, 422, "Invalid"},
      {"another version", {{"resourceVersion", "1"}}, 409, "Conflict"},
      {"both: the version counts", {{"uid", "0000"}, {"resourceVersion", "1"}}, 409, "Conflict"},
  };
  add_web(1);
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto revision = cluster.revision();
    for (const Row& row : table) {
      Json metadata = row.metadata;
      metadata["labels"] = {{hash_label, nullptr}};
      const auto response = co_await patch("w0", {{"metadata", metadata}});
      EXPECT_EQ(response.status, row.status) << row.what;
      EXPECT_EQ(Json::parse(response.body)["reason"], row.reason) << row.what;
    }
    EXPECT_EQ(cluster.revision(), revision);
    EXPECT_EQ((co_await patch("gone", Json::object())).status, 404);
  });
}

// The disruption controller counts a pod without a controller as healthy, but not in the scale from which it computes
// percentages and maxUnavailable.
TEST_F(ReplicaSetTest, AReleasedPodOpensTheBudgetOnceItsReplacementIsReady) {
  struct Row {
    Json spec;
    int replicas;
    int expected, desired, allowed;  // after the release
  };
  const Row table[] = {
      {{{"minAvailable", 1}}, 1, 2, 1, 1},      {{{"minAvailable", "50%"}}, 1, 1, 1, 1},
      {{{"minAvailable", "100%"}}, 3, 3, 3, 1}, {{{"maxUnavailable", 0}}, 1, 1, 1, 1},
      {{{"maxUnavailable", "0%"}}, 3, 3, 3, 1}, {{{"maxUnavailable", 1}}, 3, 3, 2, 2},
      {{{"minAvailable", 3}}, 3, 4, 3, 1},
  };
  for (const Row& row : table) {
    add_web(row.replicas);
    cluster.create("poddisruptionbudgets", budget("shop", "web", row.spec));
    in_world([&]() -> boost::asio::awaitable<void> {
      relabel("w0", nullptr);
      co_await pass(20s);
      const Json status = cluster.get("poddisruptionbudgets", "shop", "web")["status"];
      EXPECT_EQ(status["expectedPods"], row.expected) << row.spec;
      EXPECT_EQ(status["desiredHealthy"], row.desired) << row.spec;
      EXPECT_EQ(status["currentHealthy"], row.replicas + 1) << row.spec;
      EXPECT_EQ(status["disruptionsAllowed"], row.allowed) << row.spec;
      EXPECT_EQ((co_await evict("shop", "w0")).status, 201) << row.spec;
      co_await pass(20s);
    });
    for (const char* resource : {"deployments", "replicasets", "pods", "poddisruptionbudgets"})
      for (const Json& object : cluster.all(resource)) cluster.remove(resource, "shop", sim::name_of(object));
  }
}

// If the budget counts several controllers, it misses the replicas of the Deployment whose last owned pod was released,
// until there is a replacement. A budget of this Deployment alone expects no pod then, and allows nothing.
TEST_F(ReplicaSetTest, AReleasedPodOpensABudgetOfSeveralControllersWhileItHasNoReplacement) {
  struct Row {
    Json spec;
    bool other;        // the budget selects another workload with three replicas, too
    bool replacement;  // no quota refuses it
    int expected, desired, allowed;
  };
  const Row table[] = {
      {{{"maxUnavailable", 0}}, false, false, 0, 0, 0},    {{{"maxUnavailable", 0}}, false, true, 1, 1, 1},
      {{{"maxUnavailable", 0}}, true, false, 3, 3, 1},     {{{"maxUnavailable", 0}}, true, true, 4, 4, 1},
      {{{"minAvailable", "100%"}}, true, false, 3, 3, 1},  {{{"maxUnavailable", 1}}, true, false, 3, 2, 2},
      {{{"minAvailable", "100%"}}, false, false, 0, 0, 0}, {{{"minAvailable", 4}}, true, false, 4, 4, 0},
      {{{"minAvailable", 1}}, false, false, 1, 1, 0},
  };
  cluster.switches().quotas = true;
  for (const Row& row : table) {
    add_web(1);
    const Json api = {{"metadata", {{"name", "api"}, {"namespace", "shop"}, {"uid", "uid-api"}}},
                      {"spec", {{"replicas", 3}}}};
    if (row.other) cluster.create("replicasets", api);
    for (int i = 0; row.other && i < 3; ++i) {
      add_pod(fmt::format("a{}", i), {{"app", "web"}}, false);
      cluster.patch("pods", "shop", fmt::format("a{}", i),
                    {{"metadata", {{"ownerReferences", {owner("ReplicaSet", "api", "uid-api")}}}}});
    }
    cluster.create("poddisruptionbudgets", budget("shop", "all", row.spec));
    if (!row.replacement)
      cluster.create("resourcequotas",
                     {{"metadata", {{"name", "few"}, {"namespace", "shop"}}}, {"spec", {{"hard", {{"pods", "1"}}}}}});
    in_world([&]() -> boost::asio::awaitable<void> {
      relabel("w0", nullptr);
      co_await pass(20s);
      const Json status = cluster.get("poddisruptionbudgets", "shop", "all")["status"];
      EXPECT_EQ(status["expectedPods"], row.expected) << row.spec;
      EXPECT_EQ(status["desiredHealthy"], row.desired) << row.spec;
      EXPECT_EQ(status["disruptionsAllowed"], row.allowed) << row.spec;
    });
    for (const char* resource : {"deployments", "replicasets", "pods", "poddisruptionbudgets", "resourcequotas"})
      for (const Json& object : cluster.all(resource)) cluster.remove(resource, "shop", sim::name_of(object));
  }
}

}  // namespace
}  // namespace haulout::testing
