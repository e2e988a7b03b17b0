// Tests how the agent reads values from the YAML file, and in which line it reports a mistake.
#include <fmt/format.h>

#include "tests/agent/config/support.hpp"

namespace haulout::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

TEST(ReadFileTest, ReadsWhatADocumentedFileHas) {
  const AgentConfig config = config_of_file(
      "# the fleet's\n"
      "---\n"
      "max-unavailable: 10%\n"
      "pool: \"workers\"   # quoted\n"
      "blocking-pod-selector:\n"
      "  - app=batch,stage=running\n"
      "  - 'backup'\n"
      "reboot-method: [logind, command]\n"
      "reboot-command: [/sbin/cycle, --reason, two words]\n"
      "drain-deadline: 2h\n"
      "settle: 0\n"
      "max-concurrent: 3\n"
      "ignore-do-not-disrupt: true\n"
      "sentinel: ~\n"
      "soak: null\n"
      "zone-label:\n"
      "prometheus-url: >-\n"
      "  https://prometheus.example.com:9090/p\n");
  EXPECT_EQ(config.max_unavailable, "10%");
  EXPECT_EQ(config.pool, "workers");
  EXPECT_EQ(config.blocking_pod_selectors, (Strings{"app=batch,stage=running", "backup"}));
  EXPECT_EQ(config.reboot_methods, (std::vector<RebootMethod>{RebootMethod::logind, RebootMethod::command}));
  EXPECT_EQ(config.reboot_command, (Strings{"/sbin/cycle", "--reason", "two words"}));
  EXPECT_EQ(config.drain.timeout, Duration(2h));
  EXPECT_EQ(config.drain.settle, Duration(0s));
  EXPECT_EQ(config.drain.max_concurrent, 3u);
  EXPECT_TRUE(config.drain.policy.do_not_disrupt == drain::Treatment::evict);
  EXPECT_EQ(config.sentinel, "");
  EXPECT_EQ(config.soak, AgentConfig().soak);
  EXPECT_EQ(config.zone_label, "");
  EXPECT_EQ(config.prometheus_url, "https://prometheus.example.com:9090/p");
}

struct Good {
  std::string text;
  std::function<bool(const AgentConfig&)> holds;
};

TEST(ReadFileTest, YamlThatIsFine) {
  using C = AgentConfig;
  const std::vector<Good> rows = {
      {"surge: 'off'", [](const C& c) { return c.drain.guards.surge == drain::Surge::off; }},
      {"ignore-do-not-disrupt: yes",
       [](const C& c) { return c.drain.policy.do_not_disrupt == drain::Treatment::evict; }},
      {"ignore-do-not-disrupt: On",
       [](const C& c) { return c.drain.policy.do_not_disrupt == drain::Treatment::evict; }},
      {"ignore-do-not-disrupt: 'true'",
       [](const C& c) { return c.drain.policy.do_not_disrupt == drain::Treatment::evict; }},
      {"ignore-do-not-disrupt: off", [](const C& c) { return c == C(); }},
      {"max-concurrent: '4'", [](const C& c) { return c.drain.max_concurrent == 4; }},
      {"max-unavailable: 4", [](const C& c) { return c.max_unavailable == "4"; }},
      {"pool: '010'", [](const C& c) { return c.pool == "010"; }},
      {"pool: 'on'", [](const C& c) { return c.pool == "on"; }},
      {"pool: !!str 010", [](const C& c) { return c.pool == "010"; }},
      {"blackout: Sat 00:00", [](const C& c) { return c.blackouts == Strings{"Sat 00:00"}; }},
      {"blackout: []", [](const C& c) { return c.blackouts.empty(); }},
      {"blackout: ''", [](const C& c) { return c.blackouts.empty(); }},
      {"blackout: 2026-12-24", [](const C& c) { return c.blackouts == Strings{"2026-12-24"}; }},
      {"blackout: 22:30", [](const C& c) { return c.blackouts == Strings{"22:30"}; }},
      {"soak: 1.5h", [](const C& c) { return c.soak == Duration(90min); }},
      {"soak: &s 5m\nsettle: *s",
       [](const C& c) { return c.soak == Duration(5min) && c.drain.settle == Duration(5min); }},
      {"<<: {pool: a, soak: 1m}\npool: b", [](const C& c) { return c.pool == "b" && c.soak == Duration(1min); }},
      {"{\"pool\": \"a\", \"settle\": \"1s\"}",
       [](const C& c) { return c.pool == "a" && c.drain.settle == Duration(1s); }},
      {"'pool': a", [](const C& c) { return c.pool == "a"; }},
      {"pool: a\r\nsettle: 1s\r\n", [](const C& c) { return c.pool == "a" && c.drain.settle == Duration(1s); }},
      {"\xEF\xBB\xBFpool: a", [](const C& c) { return c.pool == "a"; }},
      {"prometheus-query: 'up{job=\"\xC3\xA9\"}'\nprometheus-url: http://p",
       [](const C& c) { return c.prometheus_query == "up{job=\"\xC3\xA9\"}"; }},
      {"", [](const C& c) { return c == C(); }},
      {"\n# nothing\n", [](const C& c) { return c == C(); }},
      {"---\n...\n", [](const C& c) { return c == C(); }},
      {"{}", [](const C& c) { return c == C(); }},
      {"null", [](const C& c) { return c == C(); }},
      {"pool: a\n---\n", [](const C& c) { return c.pool == "a"; }},
      {"---\n---\npool: a\n", [](const C& c) { return c.pool == "a"; }},
  };
  for (const Good& row : rows) EXPECT_TRUE(row.holds(config_of_file(row.text))) << row.text;
}

struct Bad {
  std::string text;
  std::string says;  // error message after the path
};

TEST(ReadFileTest, MistakesHaveLineThingCauseAndWayOut) {
  const std::vector<Bad> rows = {
      {"pool: a\n\nmax_unavailable: 2", ":3: unknown key \"max_unavailable\"; did you mean max-unavailable?"},
      {"maxUnavailable: 2", ":1: unknown key \"maxUnavailable\"; did you mean max-unavailable?"},
      {"windows: [a]", ":1: unknown key \"windows\"; did you mean window?"},
      {"colour: red", ":1: unknown key \"colour\"; 'haulout agent --help' lists all"},
      {"on: 1", ":1: unknown key \"on\"; 'haulout agent --help' lists all"},
      {"1: 1", ":1: unknown key \"1\"; 'haulout agent --help' lists all"},
      {"POOL: a", ":1: unknown key \"POOL\""},
      {"check: true", ":1: check is not allowed in the file: give it as a flag, --check"},
      {"release: false", ":1: release is not allowed in the file: give it as a flag, --release"},
      {"config: /x", ":1: config is not allowed in the file that it names: use --config or HAULOUT_CONFIG"},
      {"settle: 1s\npool: a\nsettle: 2s", ":3: duplicate key settle (first set in line 1): remove one of them"},
      {"settle: 1s\n'settle': 1s", ":2: duplicate key settle (first set in line 1): remove one of them"},
      {"drain:\n  settle: 1s", ":1: unknown key \"drain\""},
      {"settle:\n  min: 1s",
       ":1: settle contains further keys, but no option has keys of its own: write one value after it"},
      {"pool: [a, b]", ":1: pool takes one value, not a list"},
      {"soak: [1s]", ":1: soak takes one value, not a list"},
      {"window:\n  - 22:00+1h\n  - [b]", ":3: an entry of window must be a value, neither list nor mapping"},
      {"window:\n  - 22:00+1h\n  - x: b", ":3: an entry of window must be a value, neither list nor mapping"},
      {"window:\n  - 22:00+1h\n  -\n", ": invalid value \"\" for window: it is empty"},
      {"window:\n  - 22:00+1h\n  - ''\n", ":3: invalid value \"\" for window: it is empty"},
      {"window:\n  - 22:00+1h\n  - 22\n",
       ":3: invalid value \"22\" for window: YAML reads this as the number 22: put it in "
       "quotes"},
      {"window:\n  - 22:00+1h\n  - Snu 22:00\n",
       ":3: invalid value \"Snu 22:00\" for window: character 1: unknown day \"Snu\""},
      {"blackout: 2026-12-24T00:00:00Z", ":1: invalid value \"2026-12-24T00:00:00Z\" for blackout: character 1: "},
      {"surge: no", ":1: invalid value \"no\" for surge: it must be one of off, "},
      {"surge: off", ":1: invalid value \"off\" for surge: YAML reads this as the Boolean false: put it in quotes"},
      {"pool: 010", ":1: invalid value \"010\" for pool: YAML reads this as the number 8: put it in quotes"},
      {"pool: 1e3", ":1: invalid value \"1e3\" for pool: YAML reads this as the number 1000: put it in quotes"},
      {"pool: on", ":1: invalid value \"on\" for pool: YAML reads this as the Boolean true: put it in quotes"},
      {"node-name: no",
       ":1: invalid value \"no\" for node-name: YAML reads this as the Boolean false: put it in quotes"},
      {"max-concurrent: 010", ":1: invalid value \"010\" for max-concurrent: YAML reads 010 as 8: write 8"},
      {"max-concurrent: 1e3", ":1: invalid value \"1e3\" for max-concurrent: YAML reads 1e3 as 1000: write 1000"},
      {"max-concurrent: 0x10", ":1: invalid value \"0x10\" for max-concurrent: YAML reads 0x10 as 16: write 16"},
      {"max-concurrent: 1_000", ":1: invalid value \"1_000\" for max-concurrent: YAML reads 1_000 as 1000: write 1000"},
      {"max-unavailable: 010", ":1: invalid value \"010\" for max-unavailable: YAML reads 010 as 8: write 8"},
      {"max-unavailable: 0.1", ":1: invalid value \"0.1\" for max-unavailable: it is not a whole number"},
      {"max-concurrent: yes", ":1: invalid value \"yes\" for max-concurrent: it must be a number"},
      {"max-unavailable: yes",
       ":1: invalid value \"yes\" for max-unavailable: it must be a number or a percentage, like 2 or 10%"},
      {"soak: 300", ":1: invalid value \"300\" for soak: the unit is missing"},
      {"soak: on", ":1: invalid value \"on\" for soak: it must be a duration, like 90s"},
      {"unmanaged: no", ":1: invalid value \"no\" for unmanaged: it must be one of evict, refuse, skip"},
      {"slots: 0", ":1: invalid value \"0\" for slots: it must be one of lease, fleetlock, none"},
      {"reboot-method: [logind, off]",
       ":1: invalid value \"off\" for reboot-method: it must be one of logind, systemd, "
       "kexec, command, none"},
      {"reboot-method: []",
       ":1: invalid value \"\" for reboot-method: it must be one of logind, systemd, kexec, command, none"},
      {"ignore-do-not-disrupt: 1", ":1: invalid value \"1\" for ignore-do-not-disrupt: it must be true or false"},
      {"ignore-do-not-disrupt: maybe",
       ":1: invalid value \"maybe\" for ignore-do-not-disrupt: it must be true or false"},
      {"- pool: a", ":1: the file must consist of lines like \"option: value\""},
      {"\njust text", ":2: the file must consist of lines like \"option: value\""},
      {"42", ":1: the file must consist of lines like \"option: value\""},
      {"pool: a\n---\npool: b", ": the file cannot be used as YAML: line 2"},
      {"pool: [a\nsettle: 1s", ": the file cannot be used as YAML: line 2"},
      {"pool: a\n  settle: 1s", ": the file cannot be used as YAML: line 2"},
      {"pool: *nobody", ": the file cannot be used as YAML: line 1"},
      {"pool: !secret x", ": the file cannot be used as YAML: line 1"},
      {"? [a]\n: b", ": the file cannot be used as YAML: line 1"},
      {"window:\n\t- a", ": the file cannot be used as YAML: line 2"},
      {"pool: a\nslots: \xFF\xFE", ":2: this is not UTF-8: save the file as UTF-8"},
      {"pool: caf\xE9", ":1: this is not UTF-8: save the file as UTF-8"},
      {"pool: \xC0\xAF", ":1: this is not UTF-8"},
      {"pool: \xED\xA0\x80", ":1: this is not UTF-8"},
      {"pool: \xE2\x82", ":1: this is not UTF-8"},
      {std::string("\xFF\xFEp\0", 4), ":1: this is not UTF-8"},
      {"pool: a\n\x04\nslots: nonsense", ":2: control character 0x04: remove it"},
      {std::string("pool: a\0b", 9), ":1: control character 0x00: remove it"},
  };
  for (const Bad& row : rows) {
    const std::string problems = problems_of_file(row.text);
    if (row.says.starts_with(": invalid"))  // yaml-cpp gives an empty entry the position of the next token
      EXPECT_THAT(problems, HasSubstr(row.says.substr(2))) << row.text;
    else
      EXPECT_THAT(problems, StartsWith(a_path + row.says)) << row.text;
  }
}

TEST(ReadFileTest, AliasesCannotBlowItUp) {
  std::string bomb = "window: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) bomb += fmt::format("k{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  EXPECT_THAT(problems_of_file(bomb), HasSubstr(":2: unknown key \"k1\""));
}

}  // namespace
}  // namespace haulout::agent
