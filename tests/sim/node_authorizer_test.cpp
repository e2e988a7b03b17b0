// What a kubelet's credential may do, and the messages with which the server refuses the rest (measured with 1.36).
#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

class NodeAuthorizerTest : public SimTest {
 protected:
  void SetUp() override {
    for (const char* name : {"n1", "n2"}) add_node(name);
    for (const char* claim : {"mine", "theirs"}) {
      const Json named = {{"namespace", "shop"}, {"name", claim}};
      cluster.create("persistentvolumes",
                     {{"metadata", {{"name", std::string("pv-") + claim}}}, {"spec", {{"claimRef", named}}}});
      cluster.create("persistentvolumeclaims",
                     {{"metadata", named}, {"spec", {{"volumeName", std::string("pv-") + claim}}}});
    }
    for (const auto& [name, node, claim] :
         {std::tuple("own", "n1", "mine"), std::tuple("other", "n2", "theirs"), std::tuple("late", "n1", "mine")}) {
      Json made = ready_pod("shop", name, node, 0);
      made["spec"]["volumes"] = Json::array({{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", claim}}}}});
      cluster.create("pods", made);
      cluster.create("volumeattachments",
                     {{"metadata", {{"name", std::string("va-") + node}}}, {"spec", {{"nodeName", node}}}});
    }
    cluster.set_token("kubelet", sim::kubelet_of("n1"));
  }
  // Returns the HTTP status and the message of the refusal.
  boost::asio::awaitable<std::pair<int, std::string>> say(std::string method, std::string target,
                                                          std::string body = {}) {
    http::Request request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.body = std::move(body);
    if (request.method == "PATCH") request.headers.add("Content-Type", "application/merge-patch+json");
    const auto answer = co_await as_kubelet.round_trip(std::move(request), clock.now() + 60s);
    EXPECT_TRUE(answer);
    co_return std::pair(answer->status, answer->body);
  }
  sim::TokenTransport as_kubelet{cluster.api(), "kubelet"};
};

struct Row {
  const char *method, *target;
  int status;
  const char* words = "";
  const char* body = "";
};

constexpr Row what_it_may[] = {
    {"GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", 200},
    {"GET", "/api/v1/namespaces/shop/pods?fieldSelector=spec.nodeName%3Dn1,status.phase%3DRunning", 200},
    {"GET", "/api/v1/pods", 403,
     R"(cannot list resource \"pods\" in API group \"\" at the cluster scope: can only list/watch pods with spec.nodeName field selector)"},
    {"GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2", 403, "can only list/watch pods"},
    {"GET", "/api/v1/namespaces/shop/pods/own", 200},
    {"GET", "/api/v1/namespaces/shop/pods/other", 403, "no relationship found between node 'n1' and this object"},
    {"GET", "/api/v1/namespaces/shop/pods/never", 403, "no relationship found between node 'n1' and this object"},
    {"GET", "/api/v1/nodes/n1", 200},
    {"GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dn1", 200},
    {"GET", "/api/v1/nodes/n2", 403, "node 'n1' cannot read 'n2', only its own Node object"},
    {"GET", "/api/v1/nodes", 403, "cannot read all nodes, only its own Node object"},
    {"GET", "/api/v1/namespaces/shop/persistentvolumeclaims/mine", 200},
    {"GET", "/api/v1/namespaces/shop/persistentvolumeclaims/theirs", 403, "no relationship found"},
    {"GET", "/api/v1/persistentvolumes/pv-mine", 200},
    {"GET", "/api/v1/persistentvolumes/pv-theirs", 403, "no relationship found"},
    {"GET", "/api/v1/persistentvolumes", 403, "can only get individual resources of this type"},
    {"GET", "/apis/storage.k8s.io/v1/volumeattachments/va-n1", 200},
    {"GET", "/apis/storage.k8s.io/v1/volumeattachments/va-n2", 403, "no relationship found"},
    {"GET", "/apis/storage.k8s.io/v1/volumeattachments/va-n3", 403, "no relationship found"},
    {"GET", "/apis/storage.k8s.io/v1/volumeattachments", 403, "can only get individual resources"},
    {"GET", "/apis/policy/v1/poddisruptionbudgets", 403, R"(User \"system:node:n1\" cannot list resource)"},
    {"GET", "/apis/apps/v1/namespaces/shop/daemonsets/x", 403, "cannot get resource"},
    {"GET", "/api/v1/namespaces/shop", 403, "cannot get resource"},
    {"GET", "/apis/coordination.k8s.io/v1/namespaces/haulout/leases/x", 403, "kube-node-lease"},
    {"GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2", 403, "with the same name"},
    {"PATCH", "/api/v1/nodes/n1", 200, "",
     R"({"spec":{"unschedulable":true},"metadata":{"labels":{"haulout.dev/x":"y"}}})"},
    {"PATCH", "/api/v1/nodes/n2", 403, R"(node \"n1\" is not allowed to modify node \"n2\")", "{}"},
    {"PATCH", "/api/v1/nodes/n1", 403, "is not allowed to modify labels: node-role.kubernetes.io/x",
     R"({"metadata":{"labels":{"node-role.kubernetes.io/x":""}}})"},
    {"PATCH", "/api/v1/nodes/n1", 200, "",
     R"({"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":"x"}}})"},
    {"PATCH", "/api/v1/nodes/n1", 403, "is not allowed to modify taints", R"({"spec":{"taints":[]}})"},
    {"DELETE", "/api/v1/nodes/n1", 403, "cannot delete resource"},
    {"POST", "/api/v1/namespaces/shop/pods/other/eviction", 403,
     "node n1 can only evict pods with spec.nodeName set to itself", R"({"metadata":{"name":"other"}})"},
    {"POST", "/api/v1/namespaces/shop/pods/own/eviction", 201, "", R"({"metadata":{"name":"own"}})"},
    {"POST", "/api/v1/namespaces/shop/pods/own/eviction", 404, R"("kind":"pod"})", R"({"metadata":{"name":"own"}})"},
    {"GET", "/api/v1/namespaces/shop/pods/own", 403, "no relationship found"},
    {"GET", "/api/v1/namespaces/shop/persistentvolumeclaims/mine", 200},
    {"DELETE", "/api/v1/namespaces/shop/pods/other", 403, "can only delete pods with spec.nodeName set to itself"},
    {"DELETE", "/api/v1/namespaces/shop/pods/late", 200},
    {"GET", "/api/v1/namespaces/shop/persistentvolumeclaims/mine", 403, "no relationship found"},
    {"GET", "/api/v1/persistentvolumes/pv-mine", 403, "no relationship found"},
    {"GET", "/apis/storage.k8s.io/v1/volumeattachments/va-n1", 200},
};

TEST_F(NodeAuthorizerTest, OneAfterTheOther) {
  in_world([&]() -> boost::asio::awaitable<void> {
    for (const Row& row : what_it_may) {
      const auto [status, body] = co_await say(row.method, row.target, row.body);
      EXPECT_EQ(status, row.status) << row.method << ' ' << row.target << '\n' << body;
      EXPECT_THAT(body, HasSubstr(row.words)) << row.method << ' ' << row.target;
      co_await pass(1s);
    }
  });
}

TEST_F(NodeAuthorizerTest, NobodyElseIsConcerned) {
  in_world([&]() -> boost::asio::awaitable<void> {
    EXPECT_EQ((co_await ask("GET", "/api/v1/pods")).status, 200);
    EXPECT_EQ((co_await evict("shop", "other")).status, 201);
  });
}

}  // namespace
}  // namespace haulout::testing
