// Tests the migration of configurations of kured like those that people have: of its documentation, of its chart, and
// of issues. Each is written anew, and names what it is modelled on.
#include "tests/cli/migrate/kured_fixture.hpp"

namespace haulout::cli {
namespace {

struct Example {
  const char* source;
  std::string text;                // manifest or values
  std::string settings;            // the expected configuration without comments
  std::vector<std::string> to_do;  // options without a counterpart, to decide or unknown
  bool held_back = false;
};

std::string kured_with(const std::vector<std::string>& args) {
  std::string text =
      "kind: DaemonSet\nmetadata: {name: kured, namespace: kube-system}\nspec:\n  template:\n    spec:\n      volumes: "
      "[{name: sentinel, hostPath: {path: /var/run}}]\n      tolerations: [{key: "
      "node-role.kubernetes.io/control-plane, effect: NoSchedule}]\n      containers:\n      - name: kured\n        "
      "volumeMounts: "
      "[{name: sentinel, mountPath: /sentinel}]\n        command:\n        - /usr/bin/kured\n";
  for (const std::string& arg : args) text += "        - " + arg + "\n";
  return text;
}

const std::vector<Example>& examples() {
  static const std::vector<Example> all = {
      {"kubereboot/kured, kured-ds.yaml", kured_with({"--reboot-sentinel=/sentinel/reboot-required"}), "", {}},
      {"kubereboot/kured, kured-ds-signal.yaml",
       kured_with({"--reboot-sentinel=/sentinel/reboot-required", "--reboot-method=signal"}),
       "",
       {}},
      {"kubereboot/charts, values.yaml of kured 6.1.0",
       "configuration:\n  metricsPort: 8080\n  lockTtl: 0\n  endTime: ''\n  forceReboot: false\n  rebootDays: []\n"
       "  rebootSentinel: /var/run/reboot-required\n  rebootCommand: /bin/systemctl reboot\n  logFormat: text\n"
       "  concurrency: 1\n",
       "log-format: text\n",
       {}},
      {"kured.dev/docs/operation, alerts and blocking pods",
       kured_with({"--prometheus-url=http://prometheus.monitoring.svc.cluster.local",
                   "--alert-filter-regexp=^(RebootRequired|AnotherBenignAlert)$", "--alert-firing-only=true",
                   "--blocking-pod-selector=runtime=long,cost=expensive",
                   "--blocking-pod-selector=name=temperamental"}),
       "blocking-pod-selector:\n  - runtime=long,cost=expensive\n  - name=temperamental\n"
       "prometheus-url: http://prometheus.monitoring.svc.cluster.local\n"
       "prometheus-query: "
       "'ALERTS{alertstate=\"firing\",alertname!~\"RebootRequired|AnotherBenignAlert\",alertname!~\"Haulout.*\"}'\n",
       {}},
      {"kured.dev/docs/operation, the unfinished expression that is there to be copied",
       kured_with({"--prometheus-url=http://prometheus.monitoring.svc.cluster.local",
                   "--alert-filter-regexp=^(RebootRequired|AnotherBenignAlert|...$"}),
       "max-unavailable: 0\nprometheus-url: http://prometheus.monitoring.svc.cluster.local\n",
       {"alert-filter-regexp"},
       true},
      {"kubereboot/kured#148, a window at the weekend by extraArgs",
       "extraArgs: {start-time: 2am, end-time: 5am, time-zone: Europe/Berlin, reboot-days: 'sun,sat'}\n"
       "configuration: {metricsPort: 8080}\n",
       "window: Sat,Sun 02:00-05:00 Europe/Berlin\n",
       {}},
      {"kubereboot/kured#105, the file is not mounted",
       "kind: DaemonSet\nmetadata: {name: kured}\nspec: {template: {spec: {tolerations: [{operator: Exists}], "
       "containers: [{name: kured, command: "
       "[/usr/bin/kured, --period=18h, '--reboot-days=su,sa', --reboot-sentinel=/var/run/reboot-required]}]}}}\n",
       "window: Sat,Sun 00:00-24:00\n",
       {}},
      {"kubereboot/kured#387, an hour on Tuesday",
       "configuration:\n  endTime: \"03:00\"\n  rebootDays: [\"tue\"]\n  startTime: \"02:00\"\n  timeZone: \"UTC\"\n",
       "window: Tue 02:00-03:00\n",
       {}},
      {"kubereboot/kured#498, Rocky Linux with needs-restarting, over midnight",
       "configuration:\n  timeZone: Europe/Berlin\n  startTime: 10pm\n  endTime: 2am\n"
       "  messageTemplateDrain: \"Draining node %s\"\n  messageTemplateReboot: \"Rebooted node %s\"\n"
       "  rebootSentinelCommand: needs-restarting -r\n  rebootCommand: /usr/bin/systemctl reboot\n  period: 1h0m0s\n",
       "window: 22:00-02:00 Europe/Berlin\n",
       {""}},  // the present chart does not pass rebootSentinelCommand by default
      {"kubereboot/kured#179, the morning; values of an old chart",
       "configuration:\n  annotationTtl: 0\n  alertFilterRegexp: \"\"\n  blockingPodSelector: []\n  endTime: "
       "\"04:00\"\n"
       "  startTime: \"0:00\"\n  period: \"\"\n",
       "window: 00:00-04:00\n",
       {}},
      {"SUSE/doc-caasp#654, quotes that become a part of the values",
       kured_with({"--reboot-days=\"sat,sun\"", "--start-time=8pm", "--end-time=11pm", "--time-zone=\"Europe/Berlin\"",
                   "--period=10m"}),
       "window: Sat,Sun 20:00-23:00 Europe/Berlin\n",
       {"reboot-days", "time-zone"}},
      {"mysticaltech/terraform-hcloud-kube-hetzner, kured_options of kube.tf.example and its defaults",
       kured_with({"--reboot-command=/usr/bin/systemctl reboot", "--pre-reboot-node-labels=kured=rebooting",
                   "--post-reboot-node-labels=kured=done", "--period=5m", "--reboot-days=su", "--start-time=3am",
                   "--end-time=8am", "--time-zone=Local", "--lock-ttl=30m",
                   "--reboot-sentinel=/sentinel/reboot-required"}),
       "window: Sun 03:00-08:00\n",
       {"lock-ttl", "pre-reboot-node-labels", "post-reboot-node-labels"}},
  };
  return all;
}

TEST(KuredExamplesTest, EachBecomesTheExpectedConfiguration) {
  for (const Example& example : examples()) {
    SCOPED_TRACE(example.source);
    auto call = read_kured_manifest(example.text, "kured");
    ASSERT_TRUE(call) << call.error().message();
    const auto migration = migrate_kured(*std::move(call));
    ASSERT_TRUE(migration) << migration.error().message();
    EXPECT_EQ(settings_in(*migration), example.settings);
    std::vector<std::string> to_do;
    for (const MigratedOption& option : migration->options)
      if (option.outcome != Outcome::translated && option.outcome != Outcome::not_needed) to_do.push_back(option.name);
    std::vector<std::string> expected = example.to_do;
    std::ranges::sort(to_do);
    std::ranges::sort(expected);
    EXPECT_EQ(to_do, expected);
    EXPECT_EQ(migration->held_back, example.held_back);
    EXPECT_EQ(migration->is_complete(), example.to_do.empty());
    config_of(*migration);  // fails if the agent refuses it
  }
}

}  // namespace
}  // namespace haulout::cli
