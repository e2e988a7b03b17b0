// Tests the audit of manifests, which have no nodes and no pods.
#include "audit/manifests.hpp"

#include <gmock/gmock.h>

#include "tests/audit/a_cluster.hpp"

namespace haulout::audit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

Result<Report> of(const std::string& yaml) {
  AuditInput input;
  input.snapshot = {.documents = {{yaml, "app.yaml"}}, .read_at = ACluster::now(), .stored = true};
  input.source = "app.yaml";
  input.rehearse_at_most = 100;
  return audit(input);
}

constexpr const char* deployment = R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {team: payments}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 900
      containers: [{name: main, image: registry.example/web:1}]
      volumes: [{name: tmp, emptyDir: {}}]
)";

TEST(Manifests, ControllersGetTheirPods) {
  const auto report = of(std::string(deployment) + R"(
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 100%
  selector: {matchLabels: {app: web}}
)");
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->of_manifests);
  EXPECT_EQ(report->pods, 2U);
  EXPECT_THAT(brief(*report),
              UnorderedElementsAre("blocks BudgetNeverOpens default/Deployment/web",
                                   "note EmptyDir default/Deployment/web", "risk LongGrace default/Deployment/web"));
}

TEST(Manifests, ABudgetThatOpens) {
  for (const char* spec : {"maxUnavailable: 1", "minAvailable: 1", "minAvailable: 50%", "maxUnavailable: 10%"}) {
    const auto report = of(std::string(deployment) + "\n---\napiVersion: policy/v1\nkind: PodDisruptionBudget\n" +
                           "metadata: {name: web}\nspec:\n  " + spec + "\n  selector: {matchLabels: {app: web}}\n");
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_THAT(brief(*report),
                UnorderedElementsAre("note EmptyDir default/Deployment/web", "risk LongGrace default/Deployment/web"))
        << spec;
  }
}

TEST(Manifests, APodAndAStatefulSet) {
  const auto report = of(R"(
apiVersion: v1
kind: Pod
metadata: {name: bare, namespace: shop}
spec: {containers: [{name: main, image: registry.example/main:1}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: etcd, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: etcd}}
  template:
    metadata: {labels: {app: etcd}}
    spec: {containers: [{name: main, image: registry.example/etcd:1}]}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce]}
)");
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_THAT(brief(*report),
              ElementsAre("risk QuorumUnprotected shop/StatefulSet/etcd", "risk UnmanagedPod shop/Pod/bare"));
}

TEST(Manifests, AHugeNumberOfReplicasIsCut) {
  std::vector<sim::Json> objects = {{{"kind", "Deployment"},
                                     {"apiVersion", "apps/v1"},
                                     {"metadata", {{"name", "web"}}},
                                     {"spec", {{"replicas", 1'000'000'000}}}}};
  EXPECT_EQ(expanded(std::move(objects)).size(), 1U + most_replicas);
}

TEST(Manifests, NothingToAudit) {
  const auto report = of("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n");
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), Errc::decode);
  EXPECT_THAT(report.error().message(), HasSubstr("no nodes"));
}

// A snapshot without nodes was made by a wrong command. It is not taken for manifests, because its pods run somewhere.
TEST(Manifests, ASnapshotWithoutNodesIsNone) {
  const auto report = of("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {nodeName: n1}\n");
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message(), HasSubstr("the snapshot has no nodes"));
}

}  // namespace
}  // namespace haulout::audit
