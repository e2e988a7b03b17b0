#include <fmt/format.h>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

class ClusterTest : public SimTest {};

constexpr const char* as_kubectl_prints = R"({"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "u-n1", "resourceVersion": "77"}},
  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "namespace": "shop", "uid": "u-web-0"},
   "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}},
  {"apiVersion": "example.com/v1", "kind": "Unheard", "metadata": {"name": "x"}}]})";

TEST_F(ClusterTest, LoadsWhatKubectlPrints) {
  const auto loaded = cluster.load(as_kubectl_prints);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(uid("shop", "web-0"), "u-web-0");
  EXPECT_EQ(sim::uid_of(cluster.get("nodes", "", "n1")), "u-n1");
  EXPECT_NE(sim::text(cluster.get("nodes", "", "n1"), "/metadata/resourceVersion"), "77");
  EXPECT_FALSE(cluster.get("namespaces", "", "shop").is_null());
}

TEST_F(ClusterTest, LoadsYamlDocuments) {
  const auto loaded = cluster.load(R"(# a cluster
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Pod
metadata: {name: web-0, namespace: shop}
spec: {nodeName: n1}
)");
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(sim::text(cluster.get("pods", "shop", "web-0"), "/spec/nodeName"), "n1");
  EXPECT_EQ(cluster.load("a: [").error().code(), Errc::decode);
  EXPECT_EQ(cluster.load("a: 1\n---\nb: \"\xff\"").error().message(), "document 2: not valid UTF-8");
}

TEST_F(ClusterTest, BadInputNamesTheDocument) {
  const auto without_kind = cluster.load(R"({"metadata": {"name": "x"}})");
  ASSERT_FALSE(without_kind);
  EXPECT_EQ(without_kind.error().code(), Errc::invalid);
  const auto without_name = cluster.load(R"({"kind": "Pod", "metadata": {}})");
  ASSERT_FALSE(without_name);
  EXPECT_NE(without_name.error().message().find("metadata.name"), std::string::npos);
}

TEST_F(ClusterTest, BadInputNamesTheFieldOfTheWrongType) {
  struct Row {
    const char *document, *problem;
  };
  for (const Row& row : {
           Row{R"({"kind": "PodList", "items": [1]})", "not a Kubernetes object"},
           {R"({"kind": "PodList", "items": [{"metadata": 7}]})", "a Pod without metadata.name"},
           {R"({"kind": "Pod", "metadata": {"name": "a", "namespace": "shop"}, "status": "Running"})",
            "Pod shop/a: status has to be an object"},
           {R"({"kind": "Node", "metadata": {"name": "n1", "labels": {"zone": 1}}})",
            "Node n1: metadata.labels.* has to be a string"},
           {R"({"kind": "Pod", "metadata": {"name": "a", "deletionTimestamp": "now"}})",
            "Pod a: metadata.deletionTimestamp has to be a time in RFC 3339"},
           {R"({"kind": "Node", "metadata": {"name": "n1"}, "status": {"conditions": [{"type": 1}]}})",
            "Node n1: status.conditions.[].type has to be a string"},
           {R"({"kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {"minAvailable": [1]}})",
            "PodDisruptionBudget b: spec.minAvailable has to be an integer or a string"},
       }) {
    const auto loaded = cluster.load(row.document);
    ASSERT_FALSE(loaded) << row.document;
    EXPECT_EQ(loaded.error().code(), Errc::invalid);
    EXPECT_THAT(loaded.error().message(), ::testing::HasSubstr(row.problem));
  }
}

TEST_F(ClusterTest, ADeploymentThatSaysNothingIsNoEnd) {
  ASSERT_TRUE(cluster.load(R"({"kind": "Deployment", "metadata": {"name": "a", "uid": ""}})"));
  in_world([&]() -> boost::asio::awaitable<void> { co_await clock.sleep_until(clock.now() + 10s); });
  EXPECT_FALSE(sim::uid_of(cluster.get("deployments", "default", "a")).empty());
}

TEST_F(ClusterTest, NullIsAsGoodAsAbsent) {
  ASSERT_TRUE(cluster.load(R"({"kind": "Pod", "metadata": {"name": "a", "labels": null, "creationTimestamp": null},
    "spec": {"volumes": null}, "status": {"phase": null, "conditions": [{"type": "Ready", "message": null}]}})"));
  EXPECT_EQ(sim::text(cluster.get("pods", "default", "a"), "/status/phase"), "Pending");
}

TEST_F(ClusterTest, ForbiddenVerbsAnswerAsRbacDoes) {
  add_node("n1");
  cluster.create("pods", ready_pod("shop", "a", "n1"));
  in_world([&]() -> boost::asio::awaitable<void> {
    cluster.forbid("create", "pods/eviction");
    cluster.forbid("list", "poddisruptionbudgets");
    const auto evict_response = co_await evict("shop", "a");
    EXPECT_EQ(Json::parse(evict_response.body)["message"],
              R"(pods "a" is forbidden: User "haulout" cannot create resource "pods/eviction" in API group "" in the )"
              R"(namespace "shop")");
    EXPECT_EQ(evict_response.headers.find("X-Content-Type-Options"), "nosniff");
    const auto list = co_await ask("GET", "/apis/policy/v1/poddisruptionbudgets");
    EXPECT_EQ(Json::parse(list.body)["message"],
              R"(poddisruptionbudgets.policy is forbidden: User "haulout" cannot list resource )"
              R"("poddisruptionbudgets" in API group "policy" at the cluster scope)");
    for (const auto& [verb, resource, subresource, allowed] :
         {std::tuple("create", "pods", "eviction", false), std::tuple("patch", "nodes", "", true)}) {
      const Json review = {
          {"spec", {{"resourceAttributes", {{"verb", verb}, {"resource", resource}, {"subresource", subresource}}}}}};
      const auto answer = co_await ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review.dump());
      EXPECT_EQ(answer.status, 201);
      EXPECT_EQ(Json::parse(answer.body)["status"]["allowed"], allowed);
    }
  });
}

// kubectl asks the server what the names mean that people type.
TEST_F(ClusterTest, DiscoveryHasTheShortNamesOfKubernetes) {
  in_world([&]() -> boost::asio::awaitable<void> {
    std::map<std::string, std::string> found;
    for (const char* path : {"/api/v1", "/apis/apps/v1", "/apis/events.k8s.io/v1", "/apis/policy/v1",
                             "/apis/autoscaling/v2", "/apis/storage.k8s.io/v1", "/apis/coordination.k8s.io/v1"}) {
      const auto answer = co_await ask("GET", path);
      EXPECT_EQ(answer.status, 200) << path;
      const Json list = Json::parse(answer.body);
      for (const Json& resource : list["resources"])
        for (const Json& name : resource.value("shortNames", Json::array()))
          found[name.get<std::string>()] = resource["name"].get<std::string>();
    }
    const std::map<std::string, std::string> kubernetes = {{"cm", "configmaps"},
                                                           {"deploy", "deployments"},
                                                           {"ds", "daemonsets"},
                                                           {"ev", "events"},
                                                           {"hpa", "horizontalpodautoscalers"},
                                                           {"no", "nodes"},
                                                           {"ns", "namespaces"},
                                                           {"pdb", "poddisruptionbudgets"},
                                                           {"po", "pods"},
                                                           {"pv", "persistentvolumes"},
                                                           {"pvc", "persistentvolumeclaims"},
                                                           {"quota", "resourcequotas"},
                                                           {"rc", "replicationcontrollers"},
                                                           {"rs", "replicasets"},
                                                           {"sc", "storageclasses"},
                                                           {"sts", "statefulsets"},
                                                           {"svc", "services"}};
    EXPECT_EQ(found, kubernetes);
  });
}

TEST_F(ClusterTest, ThrottlingIsPlainText) {
  in_world([&]() -> boost::asio::awaitable<void> {
    cluster.throttle(10s, 8);
    const auto response = co_await ask("GET", "/api/v1/nodes");
    EXPECT_EQ(response.status, 429);
    EXPECT_EQ(response.headers.find("Content-Type"), "text/plain; charset=utf-8");
    EXPECT_EQ(response.headers.find("Retry-After"), "8");
    EXPECT_EQ(response.body, "Too many requests, please try again later.\n");
    co_await pass(10s);
    EXPECT_EQ((co_await ask("GET", "/api/v1/nodes")).status, 200);
  });
}

TEST_F(ClusterTest, AWriteOutlivesItsCaller) {
  add_node("n1");
  cluster.create("pods", ready_pod("shop", "a", "n1"));
  in_world([&]() -> boost::asio::awaitable<void> {
    http::Request request;
    request.method = "POST";
    request.target = "/api/v1/namespaces/shop/pods/a/eviction";
    request.body = R"({"metadata":{"name":"a"}})";
    const auto response = co_await cluster.api().round_trip(std::move(request), clock.now() + 1ms);
    EXPECT_EQ(response.error().code(), Errc::timeout);
    co_await pass(100ms);
    EXPECT_TRUE(sim::terminating(cluster.get("pods", "shop", "a")));
  });
}

TEST_F(ClusterTest, TheAuditRemembersEveryRequest) {
  add_node("n1");
  cluster.create("pods", ready_pod("shop", "a", "n1"));
  in_world([&]() -> boost::asio::awaitable<void> {
    const Json options = {{"gracePeriodSeconds", 7}, {"preconditions", {{"uid", uid("shop", "a")}}}};
    co_await evict("shop", "a", options);
    co_await ask("GET", "/api/v1/nodes/n1");
    const auto& audit = cluster.audit();
    EXPECT_EQ(audit.size(), 2u);
    EXPECT_EQ(audit[0].text(), "create pods/eviction shop/a 201");
    EXPECT_EQ(audit[0].uid, uid("shop", "a"));
    EXPECT_EQ(audit[0].grace_seconds, 7);
    EXPECT_EQ(audit[0].user_agent, "haulout/test");
    EXPECT_TRUE(audit[0].applied);
    EXPECT_EQ(audit[1].text(), "get nodes n1 200");
    EXPECT_FALSE(audit[1].applied);
  });
}

TEST_F(ClusterTest, ANameThatIsNoUtf8IsQuotedAllTheSame) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto response = co_await ask("GET", "/api/v1/nodes/%ff%fe");
    EXPECT_EQ(response.status, 404);
    EXPECT_FALSE(Json::parse(response.body, nullptr, false).is_discarded());
  });
}

TEST_F(ClusterTest, AnInterceptAnswersInPlaceOfTheServer) {
  cluster.server().intercept([](const sim::Call& call, const sim::AuditEntry&) -> std::optional<http::Response> {
    if (call.subresource != "eviction") return std::nullopt;
    return sim::bad_request("admission webhook \"a.example.com\" denied the request: draining slowly").response();
  });
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto response = co_await evict("shop", "a");
    EXPECT_EQ(response.status, 400);
  });
}

TEST_F(ClusterTest, ARestoredEtcdGoesBackToAnOlderRevision) {
  add_node("n1");
  cluster.create("pods", ready_pod("shop", "a", "n1"));
  const auto then = cluster.revision();
  cluster.remove("pods", "shop", "a");
  cluster.create("pods", ready_pod("shop", "b", "n1"));
  cluster.restore_etcd(then);
  EXPECT_EQ(cluster.revision(), then);
  EXPECT_FALSE(cluster.get("pods", "shop", "a").is_null());
  EXPECT_TRUE(cluster.get("pods", "shop", "b").is_null());
}

TEST_F(ClusterTest, ARestoredEtcdIsWhatTheSchedulerSees) {
  add_node("n1");
  cluster.patch("nodes", "", "n1", {{"status", {{"allocatable", {{"pods", "1"}}}}}});
  cluster.create("pods", ready_pod("shop", "a", "n1"));
  const auto node_of = [&](const char* name) { return sim::text(cluster.get("pods", "shop", name), "/spec/nodeName"); };
  in_world([&]() -> boost::asio::awaitable<void> {
    cluster.create("pods", pod("shop", "b", ""));
    co_await pass(1s);
    EXPECT_EQ(node_of("b"), "");
    const auto then = cluster.revision();
    cluster.remove("pods", "shop", "a");
    co_await pass(1s);
    EXPECT_EQ(node_of("b"), "n1");
    cluster.restore_etcd(then);
    cluster.remove("pods", "shop", "b");
    cluster.create("pods", pod("shop", "c", ""));
    co_await pass(1s);
    EXPECT_EQ(node_of("c"), "") << "where a stands again";
    cluster.remove("pods", "shop", "a");
    co_await pass(1s);
    EXPECT_EQ(node_of("c"), "n1");
  });
}

// Runs a small world once and returns its changes as text.
std::string trace(std::uint64_t seed) {
  boost::asio::io_context context{1};
  sim::VirtualClock clock{context};
  SeededRng rng{seed};
  sim::TestCluster cluster(context.get_executor(), clock, rng);
  std::string result;
  cluster.on_change([&](const sim::Change& change) {
    result += fmt::format("{} {} {} {}\n", change.time.time_since_epoch().count(), static_cast<int>(change.type),
                          change.key.name, change.object->dump());
  });
  for (const char* name : {"n1", "n2", "n3"}) cluster.create("nodes", {{"metadata", {{"name", name}}}});
  cluster.create("replicasets", {{"metadata", {{"name", "web"}, {"namespace", "shop"}}}, {"spec", {{"replicas", 9}}}});
  for (int i = 1; i < 10; ++i)
    cluster.after(std::chrono::seconds(i), [&] {
      const auto pods = cluster.all("pods");
      cluster.delete_gracefully("pods", "shop", sim::name_of(pods[rng.between(0, pods.size() - 1)]), 2);
    });
  boost::asio::cancellation_signal stop;
  boost::asio::co_spawn(context, cluster.run(),
                        boost::asio::bind_cancellation_slot(stop.slot(), [](std::exception_ptr) {}));
  clock.run(clock.now() + 60s);
  stop.emit(boost::asio::cancellation_type::terminal);
  clock.run();
  return result;
}

TEST(Determinism, TheSameSeedIsTheSameCourseOfEvents) {
  const std::string one = trace(7);
  EXPECT_GT(one.size(), 1000u);
  EXPECT_EQ(one, trace(7));
  EXPECT_NE(one, trace(8));
}

}  // namespace
}  // namespace haulout::testing
