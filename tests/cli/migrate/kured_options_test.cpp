// Tests what becomes of each option of kured, and that none is left out silently.
#include "cli/migrate/kured_options.hpp"

#include <set>

#include "retry/rng.hpp"
#include "tests/cli/migrate/kured_fixture.hpp"

namespace haulout::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

// The flags of kured 1.23.0, commit 51220cc: those that cmd/kured/main.go defines.
constexpr const char* flags_of_kured[] = {"node-id",
                                          "force-reboot",
                                          "metrics-host",
                                          "metrics-port",
                                          "drain-grace-period",
                                          "drain-pod-selector",
                                          "skip-wait-for-delete-timeout",
                                          "drain-delay",
                                          "drain-timeout",
                                          "reboot-delay",
                                          "reboot-method",
                                          "period",
                                          "ds-namespace",
                                          "ds-name",
                                          "lock-annotation",
                                          "lock-ttl",
                                          "lock-release-delay",
                                          "prometheus-url",
                                          "alert-filter-regexp",
                                          "alert-filter-match-only",
                                          "alert-firing-only",
                                          "reboot-sentinel",
                                          "prefer-no-schedule-taint",
                                          "reboot-sentinel-command",
                                          "reboot-command",
                                          "concurrency",
                                          "reboot-signal",
                                          "slack-hook-url",
                                          "slack-username",
                                          "slack-channel",
                                          "notify-url",
                                          "message-template-uncordon",
                                          "message-template-drain",
                                          "message-template-reboot",
                                          "blocking-pod-selector",
                                          "reboot-days",
                                          "start-time",
                                          "end-time",
                                          "time-zone",
                                          "annotate-nodes",
                                          "log-format",
                                          "pre-reboot-node-labels",
                                          "post-reboot-node-labels"};

TEST(KuredOptionsTest, EveryFlagOfKuredHasARow) {
  std::set<std::string_view> rows;
  for (const KuredOption& option : kured_options()) EXPECT_TRUE(rows.insert(option.name).second) << option.name;
  EXPECT_EQ(rows, std::set<std::string_view>(std::begin(flags_of_kured), std::end(flags_of_kured)));
}

struct Row {
  std::vector<std::string> words;
  std::string option;  // whose row is looked at
  Outcome outcome;
  std::string why;
  std::string settings;  // the configuration without comments
};

void expect_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const Migration migration = migrated(row.words);
    const MigratedOption found = row_of(migration, row.option);
    EXPECT_EQ(words_of(found.outcome), words_of(row.outcome)) << row.words.front() << ": " << found.why;
    EXPECT_THAT(found.why, HasSubstr(row.why)) << row.words.front();
    EXPECT_EQ(settings_in(migration), row.settings) << row.words.front();
    config_of(migration);
  }
}

TEST(KuredOptionsTest, OptionsThatHauloutHas) {
  using enum Outcome;
  expect_rows({
      {{"--concurrency=3"}, "concurrency", translated, "max-unavailable", "max-unavailable: 3\n"},
      {{"--concurrency", "2"}, "concurrency", translated, "max-unavailable", "max-unavailable: 2\n"},
      {{"--concurrency=1", "--concurrency=4"}, "concurrency", translated, "", "max-unavailable: 4\n"},
      {{"--drain-timeout=1h30m"}, "drain-timeout", translated, "drain-deadline", "drain-deadline: 1h30m\n"},
      {{"--lock-release-delay=30m"}, "lock-release-delay", translated, "soak", "soak: 30m\n"},
      {{"--blocking-pod-selector=runtime=long,cost=expensive", "--blocking-pod-selector=name=temperamental"},
       "blocking-pod-selector",
       translated,
       "",
       "blocking-pod-selector:\n  - runtime=long,cost=expensive\n  - name=temperamental\n"},
      {{"--blocking-pod-selector=env in (a,b)"},
       "blocking-pod-selector",
       translated,
       "",
       "blocking-pod-selector: env in (a,b)\n"},
      {{"--prefer-no-schedule-taint=weave.works/kured-node-reboot"},
       "prefer-no-schedule-taint",
       translated,
       "remove kured's taints",
       "waiting-taint: weave.works/kured-node-reboot\n"},
      {{"--log-format=json"}, "log-format", translated, "log-format", "log-format: json\n"},
      {{"--log-format=text"}, "log-format", translated, "log-format", "log-format: text\n"},
      {{"--reboot-sentinel=/sentinel/needs-it"}, "reboot-sentinel", translated, "", "sentinel: /run/needs-it\n"},
      {{"--reboot-sentinel=/var/run/needs-it"}, "reboot-sentinel", translated, "", "sentinel: /run/needs-it\n"},
      {{"--drain-pod-selector=app=web"}, "drain-pod-selector", translated, "the opposite", "leave-pods: app!=web\n"},
      {{"--drain-pod-selector=app in (a,b),!old"},
       "drain-pod-selector",
       translated,
       "",
       "leave-pods:\n  - app notin (a,b)\n  - old\n"},
      {{"--drain-pod-selector=app!=web"}, "drain-pod-selector", translated, "", "leave-pods: app=web\n"},
      {{"--start-time=23:00", "--end-time=5:00", "--reboot-days=mon,tue"},
       "reboot-days",
       translated,
       "both sides of midnight",
       "window:\n  - Mon,Tue 00:00-05:00\n  - Mon,Tue 23:00-24:00\n"},
      {{"--reboot-days=sun", "--reboot-days=sat", "--time-zone=Europe/Berlin"},
       "time-zone",
       translated,
       "window",
       "window: Sat,Sun 00:00-24:00 Europe/Berlin\n"},
      {{"--time-zone=Local", "--end-time=5am"}, "time-zone", translated, "Local is UTC", "window: 00:00-05:00\n"},
  });
}

// Without the alerts of Haulout, one of which would keep the nodes waiting that it is about.
TEST(KuredOptionsTest, AlertsBecomeTheSameQuery) {
  const std::string url = "--prometheus-url=http://prometheus.monitoring";
  const struct {
    std::vector<std::string> words;
    std::string query;
  } rows[] = {
      {{}, R"(ALERTS{alertname!~"Haulout.*"})"},
      {{"--alert-firing-only"}, R"(ALERTS{alertstate="firing",alertname!~"Haulout.*"})"},
      {{"--alert-firing-only=false"}, R"(ALERTS{alertname!~"Haulout.*"})"},
      {{"--alert-filter-regexp=^RebootRequired$"}, R"(ALERTS{alertname!="RebootRequired",alertname!~"Haulout.*"})"},
      {{"--alert-filter-regexp=^(RebootRequired|Watchdog)$"},
       R"(ALERTS{alertname!~"RebootRequired|Watchdog",alertname!~"Haulout.*"})"},
      // kured finds the expression in any part of the name.
      {{"--alert-filter-regexp=Reboot|Watchdog"},
       R"(ALERTS{alertname!~".*(Reboot|Watchdog).*",alertname!~"Haulout.*"})"},
      {{"--alert-filter-regexp=^Node"}, R"(ALERTS{alertname!~".*(^Node).*",alertname!~"Haulout.*"})"},
      {{"--alert-filter-regexp=^(A|B.*)$"}, R"(ALERTS{alertname!~".*(^(A|B.*)$).*",alertname!~"Haulout.*"})"},
      {{"--alert-filter-regexp=Critical", "--alert-filter-match-only=true", "--alert-firing-only"},
       R"(ALERTS{alertstate="firing",alertname=~".*(Critical).*"})"},
      {{"--alert-filter-regexp=^Critical$", "--alert-filter-match-only"}, R"(ALERTS{alertname="Critical"})"},
      {{R"(--alert-filter-regexp=a\d"b)"}, R"(ALERTS{alertname!~".*(a\\d\"b).*",alertname!~"Haulout.*"})"},
      {{"--alert-filter-match-only"}, R"(ALERTS{alertname!~"Haulout.*"})"},
  };
  for (const auto& row : rows) {
    std::vector<std::string> words = row.words;
    words.push_back(url);
    const Migration migration = migrated(words);
    EXPECT_TRUE(migration.is_complete()) << row.query;
    EXPECT_EQ(config_of(migration).prometheus_query, row.query);
    EXPECT_EQ(config_of(migration).prometheus_url, "http://prometheus.monitoring");
  }
}

TEST(KuredOptionsTest, OptionsThatHauloutDoesNotNeed) {
  using enum Outcome;
  std::vector<Row> rows;
  for (const char* word : {"--concurrency=1",
                           "--concurrency=0",
                           "--drain-timeout=0",
                           "--drain-timeout=0s",
                           "--lock-ttl=0",
                           "--period=10m",
                           "--ds-name=reboots",
                           "--ds-namespace=ops",
                           "--lock-annotation=a/b",
                           "--node-id=n1",
                           "--force-reboot=false",
                           "--drain-grace-period=-1",
                           "--skip-wait-for-delete-timeout=0",
                           "--drain-delay=0",
                           "--reboot-delay=0s",
                           "--reboot-days=su,mo,tu,we,th,fr,sa",
                           "--start-time=0:00",
                           "--end-time=23:59:59",
                           "--time-zone=Europe/Berlin",
                           "--alert-firing-only=true",
                           "--alert-filter-regexp=^A$",
                           "--reboot-method=command",
                           "--reboot-method=signal",
                           "--reboot-signal=12",
                           "--reboot-command=/bin/systemctl reboot",
                           "--reboot-command=/sbin/reboot",
                           "--reboot-sentinel=/sentinel/reboot-required",
                           "--reboot-sentinel-command=",
                           "--annotate-nodes",
                           "--metrics-port=8080",
                           "--metrics-host=0.0.0.0",
                           "--notify-url=",
                           "--slack-username=prod",
                           "--message-template-drain=Bye %s",
                           "--prefer-no-schedule-taint=",
                           "--drain-pod-selector=",
                           "--lock-release-delay=0"}) {
    const std::string text = word;
    rows.push_back({{text}, text.substr(2, text.find('=') - 2), not_needed, "", ""});
  }
  expect_rows(rows);
}

TEST(KuredOptionsTest, OptionsWithoutACounterpartSayWhy) {
  using enum Outcome;
  expect_rows({
      {{"--force-reboot"}, "force-reboot", no_counterpart, "still on it", ""},
      {{"--drain-grace-period=0"}, "drain-grace-period", no_counterpart, "each pod has its own", ""},
      {{"--skip-wait-for-delete-timeout=60"}, "skip-wait-for-delete-timeout", no_counterpart, "may still run", ""},
      {{"--lock-ttl=30m"}, "lock-ttl", no_counterpart, "a slot does not expire", ""},
      {{"--pre-reboot-node-labels=kured=rebooting"}, "pre-reboot-node-labels", no_counterpart, "hook", ""},
      {{"--post-reboot-node-labels=kured=done,a=b"}, "post-reboot-node-labels", no_counterpart, "hook", ""},
      {{"--reboot-method=signal", "--reboot-signal=12"}, "reboot-signal", no_counterpart, "no signals", ""},
  });
}

TEST(KuredOptionsTest, SomeOptionsNeedAPerson) {
  using enum Outcome;
  const std::string held = "max-unavailable: 0\n";
  expect_rows({
      {{"--reboot-sentinel-command=needs-restarting -r"}, "reboot-sentinel-command", decide, "without a shell", ""},
      {{"--reboot-command=/usr/local/bin/cycle"}, "reboot-command", decide, "logind", ""},
      {{"--drain-delay=1m"}, "drain-delay", decide, "before-drain", ""},
      {{"--reboot-delay=1m"}, "reboot-delay", decide, "after-drain", ""},
      {{"--notify-url=slack://token"}, "notify-url", decide, "hook notify", ""},
      {{"--metrics-port=9000"}, "metrics-port", decide, "9797", ""},
      {{"--metrics-host=127.0.0.1"}, "metrics-host", decide, "9797", ""},
      {{"--reboot-sentinel=/opt/flags/reboot"},
       "reboot-sentinel",
       decide,
       "mount its directory",
       "sentinel: /opt/flags/reboot\n"},
      {{"--drain-timeout=2s"}, "drain-timeout", decide, "drain-deadline is not longer than settle", ""},
      {{"--prefer-no-schedule-taint=node.kubernetes.io/reboot"},
       "prefer-no-schedule-taint",
       decide,
       "waiting-taint",
       ""},
      {{"--log-format=\"json\""}, "log-format", decide, "kured takes the quotes as a part", "log-format: json\n"},
      // What keeps kured from reboots is never left out without a brake.
      {{"--reboot-days=someday"}, "reboot-days", decide, "no weekday", held},
      {{"--reboot-days="}, "reboot-days", decide, "it never does", held},
      {{"--start-time=5:00", "--end-time=5:00"}, "start-time", decide, "shorter than a minute", held},
      {{"--end-time=5:00", "--time-zone=Mars/Olympus"}, "time-zone", decide, "window does not take this value", held},
      {{"--prometheus-url=http://me:secret@prometheus"}, "prometheus-url", decide, "without user, password", held},
      {{"--blocking-pod-selector=a b"}, "blocking-pod-selector", decide, "does not take this value", held},
      {{"--blocking-pod-selector="}, "blocking-pod-selector", decide, "would match every pod", held},
      {{"--prometheus-url=http://p", "--alert-filter-regexp=^(A|B"},
       "alert-filter-regexp",
       decide,
       "bracket",
       "max-unavailable: 0\nprometheus-url: http://p\n"},
  });
}

// What was meant by such a call is not known: perhaps a window.
TEST(KuredOptionsTest, WithACallWithWhichKuredDoesNotStartNoNodeIsUpdated) {
  using enum Outcome;
  const std::string held = "max-unavailable: 0\n";
  expect_rows({
      {{"--end-time string=17:00"}, "--end-time string", unknown, "kured 1.23.0 has no such option", held},
      {{"--quiet-hours=8-17"}, "--quiet-hours", unknown, "no such option", held},
      {{"-v"}, "-v", unknown, "no short flags", held},
      {{"--drain-timeout"}, "--drain-timeout", unknown, "no value", held},
      {{"--drain-grace-period=5m"}, "drain-grace-period", decide, "kured does not start with the value \"5m\"", held},
      {{"--concurrency=many"}, "concurrency", decide, "kured does not start with the value", held},
      {{"--drain-timeout=90"}, "drain-timeout", decide, "kured does not start with the value \"90\"", held},
      {{"--force-reboot=maybe"}, "force-reboot", decide, "kured does not start with the value", held},
      {{"--period=hourly"}, "period", decide, "kured does not start with the value", held},
      {{"--annotate-nodes=maybe"}, "annotate-nodes", decide, "kured does not start with the value", held},
      {{"--concurrency=many", "--concurrency=4"}, "concurrency", decide, "with the value \"many\"", held},
      {{"--reboot-command="}, "reboot-command", decide, "kured does not start without", held},
      {{"--reboot-method=signal", "--reboot-signal=0"}, "reboot-signal", decide, "a signal below 1", held},
      {{"--reboot-method=magic"}, "reboot-method", decide, "knows only command and signal", held},
      {{"--drain-pod-selector=a b"}, "drain-pod-selector", decide, "it cannot be read", held},
      {{"--alert-filter-regexp=(a"}, "alert-filter-regexp", decide, "bracket", held},
  });
  const Migration migration = migrated({"--start-time=10:00", "--end-time string=17:00"});
  EXPECT_TRUE(migration.held_back);
  EXPECT_THAT(migration.config, HasSubstr("# no node is updated until you have decided on --end-time string\n"));
  EXPECT_EQ(config_of(migration).windows, std::vector<std::string>{"10:00-24:00"});
}

TEST(KuredOptionsTest, KuredIgnoresWordsThatAreNoFlags) {
  const Migration migration = migrated({"--annotate-nodes", "true"});
  EXPECT_EQ(row_of(migration, "true").outcome, Outcome::unknown);
  EXPECT_FALSE(migration.held_back);
}

// kured 1.23.0 ignores such a variable, but a newer one may be kept from reboots by it.
TEST(KuredOptionsTest, AVariableThatANewerKuredMayHaveHoldsTheFleetBack) {
  const Migration migration = migrated({}, {{"KURED_QUIET_HOURS", "8-17"}});
  EXPECT_EQ(row_of(migration, "KURED_QUIET_HOURS").outcome, Outcome::unknown);
  EXPECT_EQ(settings_in(migration), "max-unavailable: 0\n");
  EXPECT_FALSE(migrated({}, {{"KUREDS_COLOUR", "red"}}).held_back);
}

TEST(KuredOptionsTest, AQueryThatMayMeanSomethingElseIsToBeChecked) {
  const std::pair<const char*, const char*> rows[] = {
      {"(?i)reboot", ".*((?i)reboot).*"}, {R"(\QReboot)", R"(.*(\\QReboot).*)"}, {"", ".*().*"}};
  for (const auto& [expression, in_query] : rows) {
    const Migration migration = migrated({"--prometheus-url=http://p", "--alert-filter-regexp", expression});
    EXPECT_EQ(row_of(migration, "alert-filter-regexp").outcome, Outcome::decide) << expression;
    EXPECT_THAT(config_of(migration).prometheus_query, HasSubstr(in_query));
  }
}

TEST(KuredOptionsTest, ABrakeKeepsTheOtherDecisions) {
  const Migration migration = migrated({"--concurrency=3", "--start-time=1:00", "--time-zone=Mars/Olympus"});
  EXPECT_TRUE(migration.held_back);
  EXPECT_FALSE(migration.is_complete());
  EXPECT_EQ(config_of(migration).max_unavailable, "0");
  EXPECT_THAT(migration.config, HasSubstr("# no node is updated until you have decided on --start-time, --time-zone"));
  EXPECT_THAT(migration.config, HasSubstr("\n# window: 01:00-24:00 Mars/Olympus\n")) << "a proposal";
  EXPECT_THAT(migration.config, HasSubstr("# max-unavailable: 3\n"));
  EXPECT_THAT(migration_lines(migration), Contains(HasSubstr("max-unavailable: 0")));
}

TEST(KuredOptionsTest, AProposalForACommandLeavesTheShellOut) {
  const Migration migration = migrated({R"(--reboot-sentinel-command=sh -c "! needs-restarting --reboothint")",
                                        "--reboot-sentinel=/sentinel/reboot-required"});
  EXPECT_THAT(migration.config, AllOf(HasSubstr("# sentinel-command: needs-restarting --reboothint\n"),
                                      HasSubstr("# sentinel-exit-codes: 0=no,1=yes\n")));
  EXPECT_EQ(row_of(migration, "reboot-sentinel").outcome, Outcome::not_needed);
  EXPECT_THAT(row_of(migration, "reboot-sentinel").why, HasSubstr("does not look for the file"));
  const std::string piped = R"(sh -c "test -f /x || needs-restarting")";
  EXPECT_THAT(migrated({"--reboot-sentinel-command=" + piped}).config,
              HasSubstr("# sentinel-command: '" + piped + "'\n"));
}

TEST(KuredOptionsTest, EachLineSaysFromWhichOptionItComes) {
  const Migration migration = migrated({"--concurrency=2", "--start-time=2:00", "--end-time=5:00", "--force-reboot"});
  EXPECT_EQ(
      migration.config,
      R"(# The configuration of Haulout's agents, made by haulout migrate kured from a test. Above each line stands the option of
# kured from which it comes.

# kured: --concurrency=2
max-unavailable: 2

# kured: --start-time=2:00 --end-time=5:00
window: 02:00-05:00

# These options of kured need a person, or have no counterpart:
# - --force-reboot (no counterpart): a node is not rebooted while a pod that must leave is still on it: see
# docs/tasks.md, A pod cannot leave
)");
}

TEST(KuredOptionsTest, ALineHasWhatAPersonShouldKnow) {
  const Migration migration = migrated({"--start-time=23:00", "--end-time=5:00", "--reboot-days=mon"});
  EXPECT_THAT(migration.config,
              HasSubstr("# kured: --reboot-days=mon --start-time=23:00 --end-time=5:00\n"
                        "# kured's days count on both sides of midnight, and so do these two windows\n"
                        "window:\n"));
}

TEST(KuredOptionsTest, WhatKuredDoesNotKnowIsNamed) {
  const Migration migration = migrated({"--reboot-day=mon", "-v", "--annotation-ttl=5m", "extra", "--drain-timeout"});
  EXPECT_THAT(row_of(migration, "--reboot-day").why, HasSubstr("was --reboot-days meant?"));
  EXPECT_THAT(row_of(migration, "-v").why, HasSubstr("no short flags"));
  EXPECT_THAT(row_of(migration, "--annotation-ttl").why, HasSubstr("has no such option"));
  EXPECT_THAT(row_of(migration, "extra").why, HasSubstr("no arguments"));
  EXPECT_THAT(row_of(migration, "--drain-timeout").why, HasSubstr("no value"));
  EXPECT_EQ(migration.count(Outcome::unknown), 5U);
  EXPECT_FALSE(migration.is_complete());
}

TEST(KuredOptionsTest, ABooleanTakesNoSeparateValueAndAnyOtherFlagTakesTheNextWord) {
  const Migration migration = migrated({"--force-reboot", "false", "--slack-channel", "--concurrency=2"});
  EXPECT_EQ(row_of(migration, "force-reboot").outcome, Outcome::no_counterpart);
  EXPECT_EQ(row_of(migration, "false").outcome, Outcome::unknown);
  EXPECT_THAT(row_of(migration, "slack-channel").spelled, ElementsAre("--slack-channel=--concurrency=2"));
}

TEST(KuredOptionsTest, VariablesReplaceFlagsAndAddToLists) {
  const Migration migration =
      migrated({"--concurrency=2", "--reboot-days=sat"}, {{"KURED_CONCURRENCY", "5"},
                                                          {"KURED_REBOOT_DAYS", "sun,mon"},
                                                          {"KURED_FORCE_REBOOT", "1"},
                                                          {"PATH", "/bin"},
                                                          {"KURED_BLOCKING_POD_SELECTOR", "a=b"}});
  const auto config = config_of(migration);
  EXPECT_EQ(config.max_unavailable, "5");
  EXPECT_THAT(config.windows, ElementsAre("Mon,Sat,Sun 00:00-24:00"));
  EXPECT_EQ(row_of(migration, "concurrency").outcome, Outcome::decide);
  EXPECT_THAT(row_of(migration, "concurrency").why, HasSubstr("the variable counts, not the flag"));
  EXPECT_THAT(row_of(migration, "concurrency").spelled, ElementsAre("--concurrency=2", "KURED_CONCURRENCY=5"));
  EXPECT_EQ(row_of(migration, "force-reboot").outcome, Outcome::no_counterpart);
  EXPECT_EQ(row_of(migration, "KURED_BLOCKING_POD_SELECTOR").outcome, Outcome::not_needed);
  EXPECT_THAT(migration.options, SizeIs(4));
}

TEST(KuredOptionsTest, WhatIsInASecretIsNotKnown) {
  const Migration migration = migrated({"--time-zone=$(ZONE)", "--start-time=1:00", "--notify-url=$(URL)"},
                                       {{"ZONE", std::nullopt, "ConfigMap kured, key zone"},
                                        {"URL", std::nullopt, "Secret kured, key url"},
                                        {"KURED_NODE_ID", std::nullopt, "field spec.nodeName"},
                                        {"KURED_DRAIN_TIMEOUT", std::nullopt, "ConfigMap kured, key drain"}});
  EXPECT_THAT(row_of(migration, "time-zone").why, HasSubstr("it is in ConfigMap kured, key zone"));
  EXPECT_THAT(row_of(migration, "notify-url").why, HasSubstr("it is in Secret kured, key url"));
  EXPECT_THAT(row_of(migration, "drain-timeout").why, HasSubstr("ConfigMap kured, key drain"));
  EXPECT_EQ(row_of(migration, "start-time").outcome, Outcome::decide);
  EXPECT_THAT(migration.config, HasSubstr("\n# window: 01:00-24:00\n")) << "a proposal without its time zone";
  EXPECT_EQ(row_of(migration, "node-id").outcome, Outcome::not_needed);
  EXPECT_EQ(settings_in(migration), "max-unavailable: 0\n");
}

TEST(KuredOptionsTest, SecretsAreNotShown) {
  const Migration migration = migrated(
      {"--notify-url=slack://hook-token", "--slack-hook-url", "https://hooks.slack.com/hook-token",
       "--prometheus-url=https://user:hook-token@prometheus", "--notify=slack://hook-token", "slack://hook-token"},
      {{"KURED_NOTIFY_URL", "slack://hook-token"}, {"KURED_URL", "hook-token"}});
  EXPECT_THAT(migration.config, Not(HasSubstr("hook-token")));
  EXPECT_THAT(migration_json(migration), Not(HasSubstr("hook-token")));
  for (const std::string& line : migration_lines(migration)) EXPECT_THAT(line, Not(HasSubstr("hook-token")));
}

TEST(KuredOptionsTest, KubernetesReplacesVariablesInWords) {
  const std::vector<KuredVariable> variables = {{"A", "1"}, {"S", std::nullopt, "Secret s, key k"}};
  const std::pair<const char*, const char*> rows[] = {{"$(A)", "1"},     {"x$(A)y", "x1y"}, {"$(B)", "$(B)"},
                                                      {"$$(A)", "$(A)"}, {"^a$", "^a$"},    {"a$$", "a$"},
                                                      {"$A", "$A"},      {"$(A", "$(A"}};
  for (const auto& [text, result] : rows) EXPECT_EQ(expanded(text, variables).text, result) << text;
  EXPECT_EQ(expanded("$(S)", variables).source, "Secret s, key k");
}

TEST(KuredOptionsTest, TheLocalTimeZoneIsThatOfTheContainer) {
  const std::vector<std::string> words = {"--time-zone=Local", "--end-time=5:00"};
  EXPECT_THAT(config_of(migrated(words, {{"TZ", "Europe/Berlin"}})).windows, ElementsAre("00:00-05:00 Europe/Berlin"));
  EXPECT_EQ(settings_in(migrated(words, {{"TZ", std::nullopt, "ConfigMap c, key tz"}})), "max-unavailable: 0\n");
  const Migration mounted = migrated(words, {}, {{"/etc/localtime", "/etc/localtime"}});
  EXPECT_EQ(settings_in(mounted), "max-unavailable: 0\n");
  EXPECT_THAT(row_of(mounted, "time-zone").why, HasSubstr("/etc/localtime"));
  const std::string proposal = "which are in UTC without one\n# window: 00:00-05:00\n";
  const std::size_t at = mounted.config.find(proposal);
  ASSERT_NE(at, std::string::npos) << mounted.config;
  EXPECT_EQ(mounted.config.find("# window: ", at + proposal.size()), std::string::npos) << "one for both options";
}

// kured counts all nodes together, the agents count control-plane nodes by themselves.
TEST(KuredOptionsTest, KuredsDefaultConcurrencyHasARow) {
  const Migration migration = migrated({"--period=1h"});
  EXPECT_EQ(row_of(migration, "concurrency").outcome, Outcome::not_needed);
  EXPECT_THAT(row_of(migration, "concurrency").why, HasSubstr("of which one more is updated at the same time"));
  EXPECT_THAT(migration_lines(migration), Contains(StartsWith("--concurrency=1 (default)  not needed")));
  EXPECT_THAT(row_of(migrated({"--concurrency=1"}), "concurrency").why, HasSubstr("of which one more"));
  EXPECT_EQ(settings_in(migration), "");
}

TEST(KuredOptionsTest, TheTaintNamesTheAuthorityThatItNeeds) {
  EXPECT_THAT(migrated({"--prefer-no-schedule-taint=weave.works/kured-node-reboot"}).config,
              AllOf(HasSubstr("authority policies"), HasSubstr("or serviceaccount")));
}

TEST(KuredOptionsTest, ASentinelIsWhereTheManifestMountsIt) {
  const struct {
    std::vector<KuredMount> mounts;
    const char *path, *sentinel;
    Outcome outcome;
  } rows[] = {
      {{{"/sentinel", "/var/run"}}, "/sentinel/x/y", "/run/x/y", Outcome::translated},
      {{{"/sentinel", "/run/deep"}}, "/sentinel/x", "/run/deep/x", Outcome::translated},
      {{{"/s", "/run"}, {"/s/t", "/run/u"}}, "/s/t/x", "/run/u/x", Outcome::translated},
      {{{"/sent", "/etc"}}, "/sentinel/x", "/run/x", Outcome::decide},
      {{}, "/sentinel/x", "/run/x", Outcome::decide},
      {{{"/sentinel", ""}}, "/sentinel/x", "", Outcome::decide},
      {{}, "relative", "", Outcome::decide},
  };
  for (const auto& row : rows) {
    const Migration migration = migrated({"--reboot-sentinel", row.path}, {}, row.mounts);
    EXPECT_EQ(row_of(migration, "reboot-sentinel").outcome, row.outcome) << row.path;
    EXPECT_EQ(config_of(migration).sentinel, row.sentinel) << row.path;
  }
}

// P8: nothing is lost without a word, and the agent accepts what is printed, whatever kured was called with.
TEST(KuredOptionsTest, P8_EveryGivenOptionHasARowAndTheAgentAcceptsTheConfiguration) {
  const std::vector<std::string> values = {
      "",        "0",       "1",    "2",           "-1",    "30m",  "90s",   "mon",  "tue,fri",
      "true",    "false",   "5:00", "23:00",       "3am",   "UTC",  "Local", "a=b",  "http://p",
      "^(A|B)$", "x: y #z", "'",    "/sentinel/x", "\"q\"", "$(X)", "\x01",  "\xff", "Europe/Rome",
      "[a]",     "- x",     "on",   "1e3",         "yes",   "!t",   "&a",    "*a"};
  SeededRng rng(7);
  const auto pick = [&rng](const auto& all) { return all[rng.next() % all.size()]; };
  const std::vector<const char*> flags(std::begin(flags_of_kured), std::end(flags_of_kured));
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::string> words;
    std::vector<KuredVariable> variables;
    std::set<std::string> given{"concurrency"};  // it always has a row
    for (auto count = rng.next() % 12; count != 0; --count) {
      const std::string flag = pick(flags);
      const KuredOption& option = *find_kured_option(flag);
      given.insert(flag);
      if (rng.next() % 4 != 0 || option.type == KuredType::repeated) {
        words.push_back("--" + flag + "=" + pick(values));
      } else {
        std::string name = "KURED_";
        for (const char c : flag) name += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
        variables.push_back({name, pick(values)});
      }
    }
    SCOPED_TRACE(::testing::PrintToString(words));
    const Migration migration = migrated(words, variables);
    std::set<std::string> rows;
    for (const MigratedOption& option : migration.options) rows.insert(option.name);
    ASSERT_EQ(rows, given);
    const agent::AgentConfig config = config_of(migration);
    ASSERT_FALSE(HasFailure());
    // What restricts kured restricts the agents, or nobody is updated.
    const MigratedOption none{};
    const auto found = [&](std::string_view name) {
      const auto row = std::ranges::find(migration.options, name, &MigratedOption::name);
      return row == migration.options.end() ? none : *row;
    };
    if (migration.held_back) ASSERT_EQ(config.max_unavailable, "0");
    for (const char* name : {"reboot-days", "start-time", "end-time", "prometheus-url", "blocking-pod-selector"})
      if (const auto row = found(name); row.outcome == Outcome::decide &&
                                        row.why.find("kured takes the quotes") == std::string::npos &&
                                        row.why.find("the variable counts") == std::string::npos)
        ASSERT_TRUE(migration.held_back) << name << ": " << row.why;
  }
}

}  // namespace
}  // namespace haulout::cli
