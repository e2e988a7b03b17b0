// Tests where the options of kured are found in manifests and in values of its chart.
#include "cli/migrate/kured_manifest.hpp"

#include "tests/cli/migrate/kured_fixture.hpp"

namespace haulout::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

KuredCall call_in(const std::string& text, const std::string& name = "kured") {
  auto call = read_kured_manifest(text, name);
  EXPECT_TRUE(call) << call.error().message();
  return call ? *std::move(call) : KuredCall{};
}

constexpr const char* manifest = R"(
apiVersion: v1
kind: ServiceAccount
metadata: {name: kured, namespace: kube-system}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kured, namespace: kube-system}
spec:
  template:
    spec:
      volumes:
        - name: flags
          hostPath: {path: /var/run/}
        - name: scratch
          emptyDir: {}
      containers:
        - name: sidecar
          image: proxy
          args: [--concurrency=9]
        - name: kured
          image: ghcr.io/kubereboot/kured:1.23.0
          command: [/usr/bin/kured, --concurrency=2]
          args: [--period=1h]
          env:
            - name: KURED_NODE_ID
              valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
            - name: KURED_NOTIFY_URL
              valueFrom: {secretKeyRef: {name: chat, key: url}}
            - name: KURED_TIME_ZONE
              valueFrom: {configMapKeyRef: {name: zones, key: here}}
            - name: TZ
              value: UTC
          envFrom:
            - secretRef: {name: more}
            - configMapRef: {name: other}
          volumeMounts:
            - {name: flags, mountPath: /sentinel/}
            - {name: scratch, mountPath: /tmp}
            - {name: flags, mountPath: /deep, subPath: a/b}
)";

TEST(KuredManifestTest, ADaemonSetAmongOtherObjects) {
  const KuredCall call = call_in(manifest);
  EXPECT_EQ(call.from, "DaemonSet kube-system/kured");
  EXPECT_THAT(call.words, ElementsAre("--concurrency=2", "--period=1h"));
  ASSERT_THAT(call.variables, SizeIs(4));
  EXPECT_EQ(call.variables[0].source, "field spec.nodeName");
  EXPECT_EQ(call.variables[1].source, "Secret chat, key url");
  EXPECT_EQ(call.variables[2].source, "ConfigMap zones, key here");
  EXPECT_EQ(call.variables[3].value, "UTC");
  EXPECT_THAT(call.variable_sets, ElementsAre("Secret more", "ConfigMap other"));
  ASSERT_THAT(call.mounts, SizeIs(3));
  EXPECT_EQ(call.mounts[0].path + " " + call.mounts[0].host, "/sentinel /var/run");
  EXPECT_EQ(call.mounts[1].host, "");
  EXPECT_EQ(call.mounts[2].host, "/var/run//a/b");
}

TEST(KuredManifestTest, EnvFromIsARowOfItsOwn) {
  const auto migration = migrate_kured(call_in(manifest));
  ASSERT_TRUE(migration);
  EXPECT_EQ(row_of(*migration, "envFrom: Secret more").outcome, Outcome::decide);
  EXPECT_EQ(row_of(*migration, "envFrom: ConfigMap other").outcome, Outcome::decide);
  EXPECT_THAT(migration->config, HasSubstr("envFrom: Secret more, envFrom: ConfigMap other,")) << "held back";
}

std::string daemon_set(const std::string& name, const std::string& container) {
  return R"({"kind":"DaemonSet","metadata":{"name":")" + name + R"("},"spec":{"template":{"spec":{"containers":[)" +
         container + "]}}}}";
}

// Haulout's agents run on every Linux node. What keeps kured from some of them must not get lost.
TEST(KuredManifestTest, TheNodesOnWhichKuredRunsAreARow) {
  const auto rows_for = [](const std::string& spec) {
    const std::string text = R"({"kind":"DaemonSet","metadata":{"name":"kured"},"spec":{"template":{"spec":{)" + spec +
                             R"("containers":[{"name":"kured"}]}}}})";
    const auto migration = migrate_kured(call_in(text));
    EXPECT_TRUE(migration);
    std::vector<std::string> rows;
    for (const MigratedOption& option : migration->options) {
      if (option.spelled.empty()) continue;  // a default of kured
      EXPECT_EQ(option.outcome, Outcome::decide);
      rows.push_back(option.spelled.front());
    }
    EXPECT_EQ(migration->held_back, !rows.empty());
    EXPECT_EQ(config_of(*migration).max_unavailable, rows.empty() ? "1" : "0");
    return rows;
  };
  const std::string tolerant =
      R"("tolerations":[{"key":"node-role.kubernetes.io/control-plane","effect":"NoSchedule"}],)";
  EXPECT_THAT(rows_for(tolerant), IsEmpty());
  EXPECT_THAT(rows_for(R"("tolerations":[{"operator":"Exists"}],)"), IsEmpty());
  EXPECT_THAT(rows_for(""), ElementsAre("tolerations"));
  EXPECT_THAT(rows_for(R"("tolerations":[{"key":"gpu","operator":"Exists"}],)"), ElementsAre("tolerations"));
  EXPECT_THAT(rows_for(tolerant + R"("nodeSelector":{"kubernetes.io/os":"linux"},)"), IsEmpty());
  EXPECT_THAT(rows_for(tolerant + R"("nodeSelector":{"kubernetes.io/os":"linux","role":"worker"},)"),
              ElementsAre(R"(nodeSelector {"role":"worker"})"));
  EXPECT_THAT(
      rows_for(tolerant + R"("affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[]}},)"),
      IsEmpty());
  EXPECT_THAT(
      rows_for(tolerant + R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{}}},)"),
      ElementsAre("affinity.nodeAffinity"));
}

// Without tolerations of its values, the chart's template adds those of control-plane nodes.
TEST(KuredManifestTest, TheValuesOfTheChartSayOnWhichNodesKuredRuns) {
  const std::string values = "configuration: {concurrency: 2}\n";
  for (const char* defaults : {"", "tolerations: []", "tolerations:", "tolerations: {}", "affinity: {}",
                               "nodeSelector: {kubernetes.io/os: linux}", "tolerations: [{operator: Exists}]"})
    EXPECT_THAT(call_in(values + defaults).placement, IsEmpty()) << defaults;
  EXPECT_THAT(call_in(values + "tolerations: [{key: gpu, operator: Exists}]").placement, SizeIs(1));
  EXPECT_THAT(call_in(values + "nodeSelector: {role: worker}").placement, SizeIs(1));
}

TEST(KuredManifestTest, ListsAndJsonAndEveryWayToCallKured) {
  const std::string args = R"("args":["--concurrency=2"])";
  const struct {
    const char* name;
    std::string text;
  } rows[] = {
      {"the image calls kured", daemon_set("reboots", R"({"image":"x/kured:1",)" + args + "}")},
      {"by the name of the container", daemon_set("reboots", R"({"name":"kured",)" + args + "}")},
      {"by the name of the DaemonSet", daemon_set("my-kured", "{" + args + "}")},
      {"another program calls it",
       daemon_set("reboots", R"({"command":["/sbin/tini","--","/usr/bin/kured","--concurrency=2"]})")},
      {"a List", R"({"kind":"List","items":[{"kind":"Pod"},)" + daemon_set("kured", "{" + args + "}") + "]}"},
      {"a List in a List",
       R"({"kind":"List","items":[{"kind":"List","items":[)" + daemon_set("kured", "{" + args + "}") + "]}]}"},
      {"by its name among several",
       R"({"items":[)" + daemon_set("kured-old", "{}") + "," + daemon_set("kured", "{" + args + "}") + "]}"},
  };
  for (const auto& row : rows) EXPECT_THAT(call_in(row.text).words, ElementsAre("--concurrency=2")) << row.name;
}

TEST(KuredManifestTest, WhatCannotBeUsedIsAnErrorThatSaysWhy) {
  const std::string kured = daemon_set("kured", "{}");
  const struct {
    std::string text;
    const char* says;
  } rows[] = {
      {"", "no DaemonSet with a container of kured"},
      {"a: [", "line 1"},
      {"{", "line 1"},
      {"just words", "no DaemonSet"},
      {"[]", "no DaemonSet"},
      {"kind: DaemonSet\nmetadata: {name: cilium}", "no DaemonSet with a container of kured"},
      {"kind: ConfigMap\nconfiguration: {concurrency: 2}", "no DaemonSet"},
      {"configuration: 3", "no DaemonSet"},
      {daemon_set("kured", R"({"command":["/bin/sh","-c","exec kured"]})"),
       "the command of its container is not kured"},
      {daemon_set("a-kured", "{}") + "\n---\n" + daemon_set("b-kured", "{}"), "choose one of them: a-kured, b-kured"},
      {kured + "\n---\n" + kured, "does not choose one of them: kured, kured"},
      {"kind: \xff", "UTF-8"},
  };
  for (const auto& row : rows) {
    const auto call = read_kured_manifest(row.text, "kured");
    ASSERT_FALSE(call) << row.text;
    EXPECT_THAT(call.error().message(), HasSubstr(row.says)) << row.text;
  }
  EXPECT_FALSE(read_kured_daemon_set("{}"));
  EXPECT_FALSE(read_kured_daemon_set("nonsense"));
  EXPECT_THAT(read_kured_daemon_set(daemon_set("web", "{},{}")).error().message(), HasSubstr("has no container"));
}

TEST(KuredManifestTest, ValuesOfTheChartAreWhatTheChartMakesOfThem) {
  const KuredCall call = call_in(R"(
configuration:
  useRebootSentinelHostPath: true
  metricsPort: 8080
  lockTtl: 0
  endTime: "5:00"
  startTime: 23:00
  forceReboot: false
  annotateNodes: true
  drainGracePeriod: -1
  rebootDays: [mon, tue]
  blockingPodSelector: ["a=b", "c"]
  rebootSentinel: /var/run/flags/reboot
  concurrency: 2
  period: ""
  rebootDay: mon
  annotationTtl: 0
extraArgs:
  drain-timeout: 1h
  alert-firing-only: ""
extraEnvVars:
  - name: KURED_NOTIFY_URL
    valueFrom: {secretKeyRef: {name: chat, key: url}}
volumeMounts:
  - {name: clock, mountPath: /etc/localtime}
volumes:
  - name: clock
    hostPath: {path: /etc/localtime}
tolerations: []
)");
  EXPECT_EQ(call.from, "the values of kured's chart");
  EXPECT_THAT(call.words,
              ::testing::UnorderedElementsAre("--concurrency=2", "--reboot-days=mon", "--reboot-days=tue",
                                              "--start-time=23:00", "--end-time=5:00", "--blocking-pod-selector=a=b",
                                              "--blocking-pod-selector=c", "--reboot-sentinel=/var/run/flags/reboot",
                                              "--drain-grace-period=-1", "--annotate-nodes=true", "--metrics-port=8080",
                                              "--drain-timeout=1h", "--alert-firing-only"));
  ASSERT_THAT(call.unused_values, SizeIs(1));
  EXPECT_EQ(call.unused_values.front().spelled, "configuration.rebootDay");
  EXPECT_THAT(call.variables, SizeIs(1));
  ASSERT_THAT(call.mounts, SizeIs(2));
  EXPECT_EQ(call.mounts[0].host, "/var/run/flags");
  const auto migration = migrate_kured(call);
  ASSERT_TRUE(migration);
  EXPECT_EQ(config_of(*migration).sentinel, "/run/flags/reboot");
  EXPECT_EQ(row_of(*migration, "configuration.rebootDay").outcome, Outcome::unknown);
  EXPECT_EQ(config_of(*migration).max_unavailable, "0") << "perhaps a newer chart has it";
}

// The keys under `configuration` of the chart 6.1.0 that it passes to kured as flags.
TEST(KuredManifestTest, EveryValueOfTheChartIsKnown) {
  std::string text = "configuration:\n  useRebootSentinelHostPath: false\n";
  std::size_t keys = 0;
  for (const char* key : {"metricsHost",
                          "metricsPort",
                          "lockTtl",
                          "alertFilterRegexp",
                          "alertFiringOnly",
                          "alertFilterMatchOnly",
                          "blockingPodSelector",
                          "endTime",
                          "lockAnnotation",
                          "period",
                          "forceReboot",
                          "drainGracePeriod",
                          "drainPodSelector",
                          "drainDelay",
                          "drainTimeout",
                          "skipWaitForDeleteTimeout",
                          "prometheusUrl",
                          "rebootDays",
                          "rebootSentinel",
                          "rebootSentinelCommand",
                          "rebootCommand",
                          "rebootDelay",
                          "rebootMethod",
                          "rebootSignal",
                          "slackChannel",
                          "slackHookUrl",
                          "slackUsername",
                          "notifyUrl",
                          "messageTemplateDrain",
                          "messageTemplateReboot",
                          "messageTemplateUncordon",
                          "startTime",
                          "timeZone",
                          "annotateNodes",
                          "lockReleaseDelay",
                          "preferNoScheduleTaint",
                          "logFormat",
                          "preRebootNodeLabels",
                          "postRebootNodeLabels",
                          "concurrency"}) {
    text += "  " + std::string(key) + ": x\n";
    ++keys;
  }
  const KuredCall call = call_in(text);
  EXPECT_THAT(call.unused_values, IsEmpty());
  EXPECT_THAT(call.words, SizeIs(keys));
  EXPECT_THAT(call.mounts, IsEmpty());
}

// The template goes over the values of a mapping as over a list.
TEST(KuredManifestTest, AMappingInTheValuesIsReadAsTheChartReadsIt) {
  EXPECT_THAT(call_in("configuration: {blockingPodSelector: {a: x=y, b: z}}").words,
              ElementsAre("--blocking-pod-selector=x=y", "--blocking-pod-selector=z"));
}

TEST(KuredManifestTest, TheChartPassesASentinelCommandOnlyWithoutTheMount) {
  const KuredCall call = call_in("configuration: {rebootSentinelCommand: needs-restarting -r}");
  EXPECT_THAT(call.words, IsEmpty());
  const auto migration = migrate_kured(call);
  ASSERT_TRUE(migration);
  EXPECT_EQ(row_of(*migration, "configuration.rebootSentinelCommand").outcome, Outcome::decide);
}

TEST(KuredManifestTest, ValuesAreKnownByTheKeysOfTheChart) {
  EXPECT_THAT(call_in("extraArgs: {start-time: 1am}").words, ElementsAre("--start-time=1am"));
  EXPECT_THAT(call_in("extraArgs: {start-time: 1am}\nofThePlatform: x").words, ElementsAre("--start-time=1am"));
  EXPECT_THAT(call_in("nodeSelector: {role: worker}\nresources: {}").placement, SizeIs(1));
  EXPECT_THAT(call_in("USER-SUPPLIED VALUES:\nmetrics: {create: true}").words, IsEmpty());
  EXPECT_THAT(call_in("kured: {enabled: true, extraArgs: {concurrency: 3}}").words, ElementsAre("--concurrency=3"));
  for (const char* other :
       {"replicas: 2\nnodeSelector: {role: worker}", "enabled: true", "extraArgs: {verbose: 1}\nx: 1",
        "extraArgs: [--concurrency=3]\nx: 1", "{}", "USER-SUPPLIED VALUES:"})
    EXPECT_FALSE(read_kured_manifest(other, "kured")) << other;
}

TEST(KuredManifestTest, AReleaseOfFluxHasTheValues) {
  const std::string head =
      "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: kured, namespace: a}\n";
  const KuredCall call = call_in(head +
                                 "spec:\n  chart: {spec: {chart: kured}}\n"
                                 "  values: {configuration: {startTime: 1am}, nodeSelector: {role: worker}}\n");
  EXPECT_EQ(call.from, "HelmRelease a/kured");
  EXPECT_THAT(call.words, ElementsAre("--start-time=1am"));
  EXPECT_THAT(call.placement, SizeIs(1));
  EXPECT_THAT(call_in(head + "spec: {chart: {spec: {chart: ./charts/kured}}}").words, IsEmpty()) << "the defaults";
  EXPECT_THAT(call_in(head + "spec: {chartRef: {name: kured}, values: {configuration: {concurrency: 2}}}").words,
              ElementsAre("--concurrency=2"));
  EXPECT_THAT(
      call_in(head + "spec: {chart: {spec: {chart: platform}}, values: {kured: {configuration: {concurrency: 2}}}}")
          .words,
      ElementsAre("--concurrency=2"));
  // What else may set values is named, and holds the fleet back.
  const auto migration = migrate_kured(call_in(
      head + "spec: {chart: {spec: {chart: kured}}, valuesFrom: [{kind: ConfigMap, name: x}], postRenderers: [{}]}"));
  ASSERT_TRUE(migration);
  EXPECT_EQ(row_of(*migration, "spec.valuesFrom").outcome, Outcome::decide);
  EXPECT_EQ(row_of(*migration, "spec.postRenderers").outcome, Outcome::decide);
  EXPECT_EQ(config_of(*migration).max_unavailable, "0");
}

TEST(KuredManifestTest, AnApplicationOfArgoCDHasTheValues) {
  const std::string head = "kind: Application\nmetadata: {name: kured, namespace: argocd}\nspec:\n";
  const std::string chart = head + "  source:\n    chart: kured\n";
  const KuredCall call =
      call_in(chart + "    helm:\n      values: |\n        configuration:\n          startTime: 1am\n");
  EXPECT_EQ(call.from, "Application argocd/kured");
  EXPECT_THAT(call.words, ElementsAre("--start-time=1am"));
  EXPECT_THAT(call_in(chart).words, IsEmpty()) << "the defaults";
  EXPECT_THAT(
      call_in(chart + "    helm: {valuesObject: {configuration: {concurrency: 2}}, values: 'ignored: 1'}").words,
      ElementsAre("--concurrency=2"));
  EXPECT_THAT(call_in(head + "  sources:\n  - {repoURL: x, ref: values}\n  - {chart: kured, helm: {valuesObject: "
                             "{extraArgs: {concurrency: 2}}}}\n")
                  .words,
              ElementsAre("--concurrency=2"));
  EXPECT_THAT(
      call_in(head + "  source: {path: kured, helm: {values: 'kured: {configuration: {concurrency: 2}}'}}").words,
      ElementsAre("--concurrency=2"));
  const auto migration = migrate_kured(
      call_in(chart + "    helm: {parameters: [{name: configuration.startTime, value: 1am}], valueFiles: [x]}"));
  ASSERT_TRUE(migration);
  EXPECT_EQ(row_of(*migration, "helm.parameters").outcome, Outcome::decide);
  EXPECT_THAT(row_of(*migration, "helm.parameters").why, HasSubstr("was not read"));
  EXPECT_EQ(row_of(*migration, "helm.valueFiles").outcome, Outcome::decide);
  EXPECT_EQ(config_of(*migration).max_unavailable, "0");
}

TEST(KuredManifestTest, OneOfSeveralReleasesIsChosenByItsName) {
  const auto release = [](const std::string& name, int nodes) {
    return "\n---\nkind: HelmRelease\nmetadata: {name: " + name +
           "}\nspec: {chart: {spec: {chart: kured}}, values: {configuration: {concurrency: " + std::to_string(nodes) +
           "}}}\n";
  };
  EXPECT_THAT(call_in(release("east", 2) + release("west", 3), "west").words, ElementsAre("--concurrency=3"));
  const struct {
    std::string text;
    const char* says;
  } rows[] = {
      {release("east", 2) + release("west", 3), "several releases of kured's chart, and --name kured does not choose"},
      {"kind: HelmRelease\nmetadata: {name: kured}\nspec: {chart: {spec: {chart: web}}}",
       "HelmRelease kured: it has no values of kured's chart: give spec.values of it"},
      {"kind: Application\nmetadata: {name: kured}\nspec: {source: {path: kured}}",
       "Application kured: it has no values of kured's chart: give the values that its source has as a file"},
      {"kind: Application\nmetadata: {name: kured}\nspec: {source: {chart: web, helm: {values: 'a: 1'}}}",
       "Application kured: it has no values of kured's chart: give spec.source.helm.values of it"},
      {"kind: ApplicationSet\nmetadata: {name: kured}\nspec: {template: {spec: {source: {chart: kured}}}}",
       "give the values of its template"},
      {"kind: Application\nmetadata: {name: kured}\nspec: {source: {chart: kured, helm: {values: 'a: ['}}}",
       "the values of Application kured: "},
      {"kind: Application\nmetadata: {name: kured}\nspec: {source: {chart: kured, helm: {values: 'words'}}}",
       "the values of Application kured: "},
  };
  for (const auto& row : rows) {
    const auto call = read_kured_manifest(row.text, "kured");
    ASSERT_FALSE(call) << row.text;
    EXPECT_THAT(call.error().message(), HasSubstr(row.says)) << row.text;
  }
  // The manifest is what runs, and a release has more than the values of some other file.
  EXPECT_THAT(call_in(release("kured", 2) + "---\n" + daemon_set("kured", "{}")).words, IsEmpty());
  EXPECT_THAT(call_in(release("kured", 2) + "---\nconfiguration: {concurrency: 5}").words,
              ElementsAre("--concurrency=2"));
}

TEST(KuredManifestTest, TheChartMayBeAPartOfAnother) {
  EXPECT_THAT(call_in("other: 1\nkured:\n  configuration: {concurrency: 3}\n").words, ElementsAre("--concurrency=3"));
  // The manifest is what runs, so it counts.
  EXPECT_THAT(call_in("configuration: {concurrency: 3}\n---\n" + daemon_set("kured", "{}")).words, IsEmpty());
}

}  // namespace
}  // namespace haulout::cli
