// Tests the audit of manifests, which have no nodes and no pods.
#include "audit/manifests.hpp"

#include <gmock/gmock.h>

#include <map>

#include "tests/audit/a_cluster.hpp"

namespace haulout::audit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
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

// Manifests have all pods, so no remedy says that a controller may create too few.
TEST(Manifests, ARemedyDoesNotLookForMissingPods) {
  const auto report = of(std::string(deployment) + "\n---\napiVersion: policy/v1\nkind: PodDisruptionBudget\n" +
                         "metadata: {name: web}\nspec: {minAvailable: 2, selector: {matchLabels: {app: web}}}\n");
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->owners.front().findings.front().way_out,
            "scale the controller to 3 replicas during the drain, or lower minAvailable to 1; or drain with "
            "--surge=closed-budget, which replaces its pods before it evicts them");
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

// Manifests of a controller with an autoscaler mostly do not say how many replicas it has.
TEST(Manifests, AnAutoscalerGivesItsTargetPods) {
  struct Row {
    const char* replicas;
    const char* autoscaler;
    std::size_t pods;
  };
  const auto objects = [](const Row& row) {
    return std::vector<sim::Json>{
        sim::Json::parse(
            std::string(R"({"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web"},"spec":{)") +
            row.replicas + "}}"),
        sim::Json::parse(std::string(R"({"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2",)") +
                         R"("metadata":{"name":"web"},"spec":)" + row.autoscaler + "}")};
  };
  for (const Row& row :
       {Row{"", R"({"minReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"web"}})", 3},
        Row{R"("replicas":5)", R"({"minReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"web"}})", 5},
        Row{R"("replicas":1)", R"({"minReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"web"}})", 3},
        Row{R"("replicas":0)", R"({"minReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"web"}})", 0},
        Row{"", R"({"scaleTargetRef":{"kind":"Deployment","name":"web"}})", 1},
        Row{"", R"({"minReplicas":3,"scaleTargetRef":{"kind":"StatefulSet","name":"web"}})", 1},
        Row{"", R"({"minReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"other"}})", 1}})
    EXPECT_EQ(expanded(objects(row)).size(), 2 + row.pods) << row.replicas << ' ' << row.autoscaler;

  const std::string manifest = std::string(deployment).replace(std::string(deployment).find("  replicas: 2\n"), 14, "");
  const auto report =
      of(manifest + "\n---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n" + "metadata: {name: web}\n" +
         "spec: {minReplicas: 2, scaleTargetRef: {kind: Deployment, name: web}}\n");
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->pods, 2U);
}

TEST(Manifests, FindingsNameTheFile) {
  AuditInput input;
  input.snapshot = {.documents = {{deployment, "shop/web.yaml"},
                                  {"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n"
                                   "spec: {minAvailable: 100%, selector: {matchLabels: {app: web}}}\n",
                                   "shop/budget.yaml"},
                                  {"apiVersion: v1\nkind: Pod\nmetadata: {name: bare, namespace: shop}\n"
                                   "spec: {containers: [{name: main, image: registry.example/main:1}]}\n",
                                   "bare.yaml"}},
                    .read_at = ACluster::now(),
                    .stored = true};
  const auto report = audit(std::move(input));
  ASSERT_TRUE(report) << report.error().message();
  std::map<std::string, std::string> files;
  for (const Owner& owner : report->owners)
    for (const Finding& finding : owner.findings) files[finding.id] = finding.file;
  EXPECT_THAT(files, UnorderedElementsAre(
                         std::pair("BudgetNeverOpens", "shop/budget.yaml"), std::pair("EmptyDir", "shop/web.yaml"),
                         std::pair("LongGrace", "shop/web.yaml"), std::pair("UnmanagedPod", "bare.yaml")));
}

TEST(Manifests, AHugeNumberOfReplicasIsCut) {
  std::vector<sim::Json> objects = {{{"kind", "Deployment"},
                                     {"apiVersion", "apps/v1"},
                                     {"metadata", {{"name", "web"}}},
                                     {"spec", {{"replicas", 1'000'000'000}}}}};
  EXPECT_EQ(expanded(std::move(objects)).size(), 1U + most_replicas);
}

// These files are what manifests are made from.
TEST(Manifests, WhatMustBeRenderedFirstIsSaid) {
  const std::string kustomization = "resources:\n- web.yaml\n";
  const std::string named = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [web.yaml]\n";
  const std::string chart = "apiVersion: v2\nname: shop\nversion: 1.0.0\n";
  const std::string template_text =
      "apiVersion: apps/v1\nkind: Deployment\nspec:\n  replicas: {{ .Values.replicas }}\n";
  const std::string flow = "{{- if .Values.web }}\napiVersion: v1\n{{- end }}\n";
  const struct {
    std::string text, file, says;
  } rows[] = {
      {kustomization, "shop/kustomization.yaml", "kubectl kustomize shop | haulout audit -f -"},
      {kustomization, "kustomization.yml", "kubectl kustomize . | haulout audit -f -"},
      {named, "shop/kustomization.yaml", "a kustomization only names manifests"},
      {chart, "charts/shop/Chart.yaml", "helm template charts/shop | haulout audit -f -"},
      {template_text, "web.yaml", "it is a template with {{ }}, so render it first: helm template"},
      {flow, "the standard input", "it is a template with {{ }}"},
  };
  for (const auto& row : rows) {
    AuditInput input;
    input.snapshot = {.documents = {{row.text, row.file}}, .read_at = ACluster::now(), .stored = true};
    const auto report = audit(std::move(input));
    ASSERT_FALSE(report) << row.file;
    EXPECT_THAT(report.error().message(), HasSubstr(row.says)) << row.file;
  }
  for (const char* text : {R"({"kind": "ConfigMap", "data": {"a": "{{ b }}"})", "kind: ConfigMap\ndata: [a\n"}) {
    AuditInput input;
    input.snapshot = {.documents = {{text, "a.yaml"}}, .read_at = ACluster::now(), .stored = true};
    const auto report = audit(std::move(input));
    ASSERT_FALSE(report) << text;
    EXPECT_THAT(report.error().message(), Not(HasSubstr("template"))) << text;
  }
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
