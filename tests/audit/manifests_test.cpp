// Tests the audit of manifests, which have no nodes and no pods.
#include "audit/manifests.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include "tests/audit/a_cluster.hpp"

namespace haulout::audit {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

Result<Report> of(std::vector<rehearse::Document> documents) {
  AuditInput input;
  input.snapshot = {.documents = std::move(documents), .read_at = ACluster::now(), .stored = true};
  input.source = "app.yaml";
  input.rehearse_at_most = 100;
  return audit(input);
}

Result<Report> of(const std::string& yaml) {
  return of({rehearse::Document{yaml, "app.yaml"}});
}

// Files as they are found in a directory.
Result<Report> found(std::vector<rehearse::Document> documents) {
  for (rehearse::Document& document : documents) document.found = true;
  return of(std::move(documents));
}

std::vector<std::string> assumed_beyond_usual(const Report& report) {
  return {report.assumed.begin() + 2, report.assumed.end()};
}

std::string budget(const std::string& spec) {
  return "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {" + spec + "}\n";
}
constexpr const char* of_web = "selector: {matchLabels: {app: web}}";

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
  const auto report =
      of("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {nodeName: n1}\nstatus: {phase: Running}\n");
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message(), HasSubstr("the snapshot has no nodes"));
}

// A manifest may name a node, too: of a debug pod, or of a static one.
TEST(Manifests, APodThatNamesANodeIsAManifest) {
  const auto report = of("apiVersion: v1\nkind: Pod\nmetadata: {name: shell}\nspec: {nodeName: HOSTNAME}\n");
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->of_manifests);
  EXPECT_THAT(brief(*report), ElementsAre("risk UnmanagedPod default/Pod/shell"));
  EXPECT_THAT(report->owners.front().findings.front().nodes, IsEmpty());
}

// Directories of environments often have the same objects, and what blocks in one of them must not vanish unsaid.
TEST(Manifests, AnObjectInTwoFilesIsSaid) {
  const std::string lax = budget(std::string("minAvailable: 1, ") + of_web);
  const std::string strict = budget(std::string("minAvailable: 2, ") + of_web);
  const auto report = of({{lax, "dev/web.yaml"}, {deployment, "web.yaml"}, {strict, "prod/web.yaml"}});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_THAT(assumed_beyond_usual(*report),
              ElementsAre("PodDisruptionBudget default/web is in dev/web.yaml and in prod/web.yaml, and only the first "
                          "counts; audit one environment at a time, for example kubectl kustomize DIR | haulout audit "
                          "-f -"));
  EXPECT_THAT(brief(*report), Not(Contains(HasSubstr("BudgetNeverOpens"))));

  const auto other = of({{strict, "a.yaml"}, {deployment, "web.yaml"}, {lax, "b.yaml"}});
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_THAT(brief(*other), Contains(HasSubstr("BudgetNeverOpens")));

  const auto twice = of(lax + "---\n" + strict);
  ASSERT_TRUE(twice) << twice.error().message();
  EXPECT_THAT(assumed_beyond_usual(*twice), ElementsAre(HasSubstr("default/web is twice in app.yaml, and only")));

  const auto same = of({{lax, "a.yaml"}, {deployment, "web.yaml"}, {deployment, "more.yaml"}, {lax, "b.yaml"}});
  ASSERT_TRUE(same) << same.error().message();
  EXPECT_THAT(assumed_beyond_usual(*same), IsEmpty());
  EXPECT_EQ(same->pods, 2U);
}

TEST(Manifests, ManyObjectsInTwoFilesAreCounted) {
  std::string one, two;
  for (int i = 0; i < 8; ++i)
    for (std::string* to : {&one, &two})
      *to += fmt::format(
          "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: b{}}}\n"
          "spec: {{minAvailable: {}, selector: {{}}}}\n",
          i, to == &one ? 1 : 2);
  const auto report = of({{one, "one.yaml"}, {two, "two.yaml"}});
  ASSERT_TRUE(report) << report.error().message();
  ASSERT_EQ(report->assumed.size(), 2U + 6U);
  EXPECT_EQ(report->assumed.back(), "and 3 more objects that are in two files, of which only the first counts");
}

// A snapshot may have an object more than once, in files that were written one after the other.
TEST(Manifests, ASnapshotMayRepeatAnObject) {
  AuditInput input = ACluster().input();
  input.snapshot.stored = true;
  input.snapshot.documents.push_back(input.snapshot.documents.front());
  const auto once = audit(ACluster().input());
  const auto report = audit(std::move(input));
  ASSERT_TRUE(once && report);
  EXPECT_EQ(report->pods, once->pods);
  for (const std::string& phrase : report->assumed) EXPECT_THAT(phrase, Not(HasSubstr("only the first counts")));
}

// Directories of kustomizations have patches, which look like objects.
TEST(Manifests, APatchDoesNotReplaceItsObject) {
  const std::string whole = deployment + ("\n---\n" + budget(std::string("minAvailable: 2, ") + of_web));
  const std::string head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";
  const struct {
    std::string patch, says;
  } rows[] = {
      {budget("minAvailable: 0"), "PodDisruptionBudget default/web in a.yaml has no spec.selector, so it counts"},
      {head + "spec: {replicas: 9}\n", "Deployment default/web in a.yaml has no spec.template"},
      {head + "spec: {template: {spec: {containers: [{name: main, image: x}]}}}\n", "has no spec.selector"},
      {head + "$patch: delete\n", "has $patch"},
  };
  for (const auto& row : rows) {
    const auto report = of({{row.patch, "a.yaml"}, {whole, "web.yaml"}});
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(report->pods, 2U) << row.patch;
    EXPECT_THAT(brief(*report), Contains("blocks BudgetNeverOpens default/Deployment/web")) << row.patch;
    EXPECT_THAT(assumed_beyond_usual(*report), ElementsAre(HasSubstr(row.says))) << row.patch;
    const auto alone = of({{row.patch, "a.yaml"}});
    ASSERT_FALSE(alone) << row.patch;
    EXPECT_THAT(alone.error().message(), HasSubstr("only patches of workloads or budgets")) << row.patch;
  }
  // Old API servers took the selector from the template.
  const auto old =
      of("apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: web}\n"
         "spec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: x}]}}}");
  ASSERT_TRUE(old) << old.error().message();
  EXPECT_EQ(old->pods, 1U);
}

TEST(Manifests, AGeneratedNameIsUnique) {
  const auto job = [](const char* metadata) {
    return fmt::format(
        "---\napiVersion: batch/v1\nkind: Job\nmetadata: {{{}}}\n"
        "spec: {{template: {{spec: {{containers: [{{name: main, image: x}}]}}}}}}\n",
        metadata);
  };
  const auto report =
      of({{job("generateName: up-") + job("name: up-1"), "a.yaml"}, {job("generateName: up-"), "b.yaml"}});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->pods, 3U);
  EXPECT_EQ(report->owners_in_all, 3U);
  EXPECT_THAT(assumed_beyond_usual(*report), IsEmpty());
}

TEST(Manifests, OtherKindsOfTheSameNameAreNotJudged) {
  const auto report = found({{std::string(deployment), "web.yaml"},
                             {"apiVersion: longhorn.io/v1beta2\nkind: Node\nmetadata: {name: worker-1}\n", "ln.yaml"}});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->of_manifests);
  EXPECT_EQ(report->pods, 2U);
}

// A drain evicts nothing of these, but they are workloads.
TEST(Manifests, DaemonSetsAndCronJobsAreWorkloads) {
  const std::string set =
      "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: logs}\n"
      "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}}}\n";
  const std::string cron = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly}\nspec: {}\n";
  for (const std::string& text : {set, cron, set + "---\n" + cron}) {
    const auto report = of(text);
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(report->pods, 0U);
    EXPECT_THAT(report->owners, IsEmpty());
    EXPECT_THAT(assumed_beyond_usual(*report), ElementsAre(HasSubstr("a drain evicts nothing of these files")));
  }
  const auto both = of(set + "---" + deployment);
  ASSERT_TRUE(both) << both.error().message();
  EXPECT_THAT(assumed_beyond_usual(*both), IsEmpty());
}

TEST(Manifests, WithoutWorkloadsTheErrorSaysWhatToRender) {
  const struct {
    const char *text, *says;
  } rows[] = {
      {"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\n",
       "a HelmRelease, from which a controller makes them; render what it names: helm template CHART | haulout audit"},
      {"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\n",
       "a Kustomization, from which a controller makes them; render what it names: kubectl kustomize DIR | haulout"},
      {"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\n", "an Application"},
      {"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n",
       "no workloads or budgets either"},
  };
  for (const auto& row : rows) {
    const auto report = of(std::string(row.text));
    ASSERT_FALSE(report) << row.text;
    EXPECT_EQ(report.error().code(), Errc::decode);
    EXPECT_THAT(report.error().message(), HasSubstr(row.says));
  }
}

// Repositories have files of other programs beside their manifests.
TEST(Manifests, WhatIsFoundInADirectoryMayBeForeign) {
  const auto report = found({
      {"apiVersion: v2\nname: shop\n", "chart/Chart.yaml"},
      {"kind: Deployment\nmetadata: {name: {{ .Release.Name }}}\n", "chart/templates/web.yaml"},
      {"replicas: 3\n", "chart/values.yaml"},
      {"resources: [web.yaml]\n", "kustomization.yaml"},
      {"site: !ENV x\n", "mkdocs.yml"},
      {"{ // a comment\n}", "tsconfig.json"},
      {"kind: ConfigMap\napiVersion: v1\nmetadata: {name: c, labels: {dashboard: 1}}\n", "dashboard.yaml"},
      {deployment, "web.yaml"},
  });
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->pods, 2U);
  EXPECT_THAT(
      assumed_beyond_usual(*report),
      ElementsAre("1 kustomization was skipped, because a kustomization only names manifests (kubectl kustomize "
                  "DIR | haulout audit -f - builds it): kustomization.yaml",
                  "1 Chart.yaml of Helm was skipped: chart/Chart.yaml",
                  "1 template was skipped because of {{ }} (helm template CHART | haulout audit -f - renders a "
                  "chart): chart/templates/web.yaml",
                  "3 files were skipped, in whole or in part, because what has no kind is no Kubernetes object: "
                  "chart/values.yaml, mkdocs.yml, tsconfig.json"));
}

TEST(Manifests, WhatIsFoundInADirectoryMayBeBroken) {
  const std::string broken = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: many}\n";
  const auto object = found({{deployment, "web.yaml"}, {broken, "broken.yaml"}});
  ASSERT_FALSE(object);
  EXPECT_THAT(
      object.error().message(),
      HasSubstr("in broken.yaml cannot be used: document 1: Deployment web: spec.replicas has to be an integer"));
  const auto text = found({{deployment, "web.yaml"}, {"kind: Deployment\nspec: [a\n", "broken.yaml"}});
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message(), HasSubstr("in broken.yaml cannot be used"));
}

TEST(Manifests, ADirectoryWithNothingLeft) {
  const struct {
    rehearse::Document document;
    const char* says;
  } rows[] = {
      {{"resources: [web.yaml]\n", "kustomization.yaml"}, "a kustomization only names manifests"},
      {{"kind: Deployment\nspec: {{ x }}\n", "web.yaml"}, "only templates with {{ }}, so render them first: helm"},
      {{"replicas: 3\n", "values.yaml"}, "no workloads or budgets either"},
  };
  for (const auto& row : rows) {
    const auto report = found({row.document});
    ASSERT_FALSE(report) << row.says;
    EXPECT_THAT(report.error().message(), HasSubstr(row.says));
  }
}

// An operator or Helm may create the pods, so that nobody may delete the budget.
TEST(Manifests, ABudgetWithoutPodsMayHavePodsLater) {
  const auto report = of(budget("maxUnavailable: 1, selector: {matchLabels: {app: db}}"));
  ASSERT_TRUE(report) << report.error().message();
  ASSERT_THAT(brief(*report), ElementsAre("note BudgetMatchesNothing default/PodDisruptionBudget/web"));
  EXPECT_EQ(
      report->owners.front().findings.front().way_out,
      "no workload in these files has such pods: correct its selector, unless an operator or another chart creates "
      "them");
}

}  // namespace
}  // namespace haulout::audit
