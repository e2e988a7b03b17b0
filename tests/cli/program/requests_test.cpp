#include "agent/process/transports.hpp"
#include "cli/program/program.hpp"

namespace haulout::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Row {
  const char* method;
  const char* target;
  agent::RequestInfo info;
};

TEST(RequestInfoTest, IsWhatTheAuthorizerSees) {
  const std::vector<Row> rows = {
      {"GET", "/api/v1/nodes/n1", {"get", "", "nodes", "", "", "n1"}},
      {"GET", "/api/v1/nodes?labelSelector=a%3Db", {"list", "", "nodes", "", "", ""}},
      {"GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=500", {"list", "", "pods", "", "", ""}},
      {"GET", "/api/v1/pods?watch=1&resourceVersion=5", {"watch", "", "pods", "", "", ""}},
      {"GET", "/api/v1/pods?resourceVersion=5&watch=true", {"watch", "", "pods", "", "", ""}},
      {"GET", "/api/v1/pods?watch=0", {"list", "", "pods", "", "", ""}},
      {"PATCH", "/api/v1/nodes/n1?fieldManager=haulout", {"patch", "", "nodes", "", "", "n1"}},
      {"POST", "/api/v1/namespaces/shop/pods/web-0/eviction", {"create", "", "pods", "eviction", "shop", "web-0"}},
      {"DELETE", "/api/v1/namespaces/shop/pods/web-0", {"delete", "", "pods", "", "shop", "web-0"}},
      {"DELETE", "/api/v1/namespaces/shop/pods", {"deletecollection", "", "pods", "", "shop", ""}},
      {"GET", "/api/v1/namespaces/shop", {"get", "", "namespaces", "", "", "shop"}},
      {"PUT", "/api/v1/nodes/n1/status", {"update", "", "nodes", "status", "", "n1"}},
      {"GET", "/apis/policy/v1/poddisruptionbudgets", {"list", "policy", "poddisruptionbudgets", "", "", ""}},
      {"GET",
       "/apis/apps/v1/namespaces/kube-system/daemonsets/proxy",
       {"get", "apps", "daemonsets", "", "kube-system", "proxy"}},
      {"POST",
       "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
       {"create", "authorization.k8s.io", "selfsubjectaccessreviews", "", "", ""}},
      {"GET", "/k8s/clusters/c-1/api/v1/nodes/n1", {"get", "", "nodes", "", "", "n1"}},
      {"GET", "/version", {"get", "", "", "", "", ""}},
      {"GET", "/", {"get", "", "", "", "", ""}},
  };
  for (const Row& row : rows) EXPECT_EQ(agent::describe_request(row.method, row.target), row.info) << row.target;
}

TEST(AdviceTest, TheRuleToAdd) {
  EXPECT_EQ(rbac_hint("create", "", "pods", "eviction"),
            "- apiGroups: [\"\"]\n  resources: [\"pods/eviction\"]\n  verbs: [\"create\"]\n");
  EXPECT_EQ(rbac_hint("list", "policy", "poddisruptionbudgets", ""),
            "- apiGroups: [\"policy\"]\n  resources: [\"poddisruptionbudgets\"]\n  verbs: [\"list\"]\n");
}

TEST(AdviceTest, OfErrors) {
  Error forbidden(Errc::status, "no");
  forbidden.peer.emplace().code = 403;
  const auto denied = agent::describe_request("PATCH", "/api/v1/nodes/n1");
  ASSERT_THAT(advice(forbidden, denied), SizeIs(2));
  EXPECT_THAT(advice(forbidden, denied)[1], HasSubstr("verbs: [\"patch\"]"));
  EXPECT_THAT(advice(forbidden, std::nullopt)[1], HasSubstr("kind: ClusterRole"));
  forbidden.peer->kind = "pods/eviction";
  EXPECT_THAT(advice(forbidden, denied)[1], HasSubstr("kind: ClusterRole")) << "another right was denied before";
  EXPECT_THAT(advice(Error(Errc::unavailable, "says it all"), std::nullopt), IsEmpty());
  for (const Errc code :
       {Errc::dns, Errc::tls, Errc::unreachable, Errc::timeout, Errc::reset, Errc::protocol, Errc::decode})
    EXPECT_THAT(advice(Error(code, ""), denied), SizeIs(1)) << to_string(code);
}

}  // namespace
}  // namespace haulout::cli
