// Tests a bad value of every type from every source. Each message names the option, the cause and the remedy.
#include <fmt/format.h>

#include "tests/agent/config/support.hpp"

namespace haulout::agent {
namespace {

struct Row {
  std::string name;
  std::string value;
  std::string why;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {"node-name", "Node_1",
       "this cannot be a Node's name: its parts between dots are lower-case letters, digits and '-', with no '-' at an "
       "end; run kubectl get nodes to list the names"},
      {"namespace", "kube.system",
       "it must consist of lower-case letters, digits and '-', begin and end with a letter or digit, and have at most "
       "63 characters"},
      {"pool", "Workers",
       "it must consist of lower-case letters, digits and '-', begin and end with a letter or digit, and have at most "
       "63 characters"},
      {"pool-label", "a b", "it must be the key of a label, like topology.kubernetes.io/zone"},
      {"host-root", "host", "it must be an absolute path: begin it with /"},
      {"fleetlock-url", "fleetlock.example.com",
       "it must look like https://host:port/path or http://host:port/path, without user, password or query"},
      {"metrics-address", "localhost",
       "it needs a colon and a port; write it like 127.0.0.1:9090, [::1]:9090 or :9090 (all "
       "addresses)"},
      {"sentinel-exit-codes", "0", "write it like 0=yes,1=no: exit codes from 0 to 255, each once"},
      {"authority", "root", "it must be one of auto, impersonation, kubelet, policies, serviceaccount"},
      {"slots", "leases", "it must be one of lease, fleetlock, none"},
      {"backend", "ubuntu", "it must be one of auto, debian, file, command, bottlerocket, flatcar, rpm-ostree"},
      {"emptydir", "skip", "it must be one of evict, refuse"},
      {"unmanaged", "leave", "it must be one of evict, refuse, skip"},
      {"pinned", "skip", "it must be one of wait, leave"},
      {"leave-pods", "a in (b", "label selector \"a in (b\": expected ')' at the end"},
      {"finished", "refuse", "it must be one of skip, evict"},
      {"log-format", "xml", "it must be one of text, json"},
      {"reboot-method", "logind,soft",
       "it must be one of logind, systemd, kexec, command, none; separate several with commas, the preferred one "
       "first"},
      {"reboot-method", "logind,logind", "logind is given twice"},
      {"ignore-do-not-disrupt", "maybe", "it must be true or false"},
      {"max-concurrent", "many", "it must be a whole number from 1 to 1000000, or unlimited"},
      {"max-concurrent", "0x", "it must be a whole number from 1 to 1000000, or unlimited"},
      {"max-concurrent", "-1", "it must be from 1 to 1000000, or unlimited"},
      {"max-concurrent", "99999999999", "it must be from 1 to 1000000, or unlimited"},
      {"max-reboots-per-day", "11", "it must be from 0 to 10"},
      {"verbosity", "1.5", "it must be a whole number from 0 to 10"},
      {"max-unavailable", "some",
       "it is not a whole number; write a number of nodes like 1, or a percentage of the pool like 25%"},
      {"max-unavailable", "101%",
       "a percentage is at most 100%; write a number of nodes like 1, or a percentage of the pool like 25%"},
      {"ramp", "1,some",
       "wave \"some\": it is not a whole number; write a number of nodes like 1, or a percentage of the pool like 25%"},
      {"ramp", "1,0",
       "wave \"0\" has no node, so the roll-out would never begin or go on; write waves like 1,2,5%,25%"},
      {"ramp", "1,", "it ends with a comma; write waves like 1,2,5%,25%"},
      {"roll-out-order", "alphabet",
       "it is none of any, zone, asked and label:KEY; write for example label:example.com/rank"},
      {"roll-out-order", "label:a b", "label \"a b\": it must be the key of a label, like topology.kubernetes.io/zone"},
      {"roll-out-order", "label:", "label \"\": it must be the key of a label, like topology.kubernetes.io/zone"},
      {"soak", "soon", "a number is missing; write a duration like 90s, 5m or 1h30m"},
      {"soak", "5 m", "unknown unit \" m\"; write a duration like 90s, 5m or 1h30m"},
      {"soak", "5d", "unknown unit \"d\"; write a duration like 90s, 5m or 1h30m"},
      {"soak", "-5s", "it must not be negative"},
      {"backoff", "0s", "it must be longer than 0"},
      {"reboot-limit", "0s", "it must be longer than 0"},
      {"evict-daemonset-pods", "a in (b", "label selector \"a in (b\": expected ')' at the end"},
      {"pod-rule", "app=db",
       "it does not end with an action: =evict, =skip, =last, =wait-completed or =wait-completed=DURATION; write "
       "WHO=ACTION, like kind:Job=wait-completed=2h or namespace:batch,app=db=last"},
      {"drain-order", "app=db", "it does not end with = and a whole number; write SELECTOR=NUMBER, like app=db=10"},
      {"blocking-pod-selector", "a in (b", "label selector \"a in (b\": expected ')' at the end"},
      {"window", "22:00+4d", "character 7: \"4d\": unknown unit \"d\"; write a duration like +90m or +4h"},
      {"window", " ",
       "character 2: it is empty; write it like 22:00+4h, Sat,Sun 01:00+6h Europe/Berlin or cron(0 2 * * 1-5)+3h"},
      {"blackout", "2026-12-20..2026-12-32",
       "character 13: 2026-12-32 does not exist in the calendar; write dates like 2026-12-24 or "
       "2026-12-20..2027-01-03"},
      {"sentinel-command", "/bin/x 'a", "a ' is not closed"},
      {"reboot-command", " ", "it does not name a program"},
      {"prometheus-query", " ", "it is empty"},
      {"waiting-taint", "node.kubernetes.io/out-of-service",
       "other programs act on taints of the domain kubernetes.io, so an agent must not set them; take a key of your "
       "own "
       "domain, like example.com/update-waits"},
      {"waiting-taint", "update-waits",
       "its key needs a domain, like example.com/update-waits: other programs use keys without one"},
      {"verify-condition", "NetworkReady=true",
       "its status is none that conditions have; write TYPE or TYPE=STATUS, like example.com/NetworkReady"},
      {"verify-condition", "Ready",
       "Ready is the kubelet's condition, and the agent always waits for it; remove this value"},
      {"verify-condition", "HauloutMaintenance=False",
       "HauloutMaintenance is a condition that the agent itself changes during the update, so it would wait for "
       "itself; name a condition of another program"},
      {"verify-condition", "MaintenanceInProgress=False",
       "MaintenanceInProgress is a condition that the agent itself changes during the update, so it would wait for "
       "itself; name a condition of another program"},
  };
  return table;
}

std::string quoted_yaml(const std::string& value) {
  std::string text = "'";
  for (const char c : value) text += c == '\'' ? std::string("''") : std::string(1, c);
  return text + "'";
}

TEST(BadValuesTest, FromEverySource) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name + "=" + row.value);
    const auto message = [&](const std::string& name) {
      return fmt::format("invalid value \"{}\" for {}: {}", row.value, name, row.why);
    };
    const std::string variable = find_option(row.name)->variable();
    EXPECT_THAT(problems_of({{row.name, row.value}}), ::testing::StartsWith(message("--" + row.name)));
    if (row.name != "window" || row.value != " ")  // a variable is split at semicolons, and blank items are ignored
      EXPECT_THAT(problems_of({}, {{variable, row.value}}), ::testing::StartsWith(message(variable)));
    EXPECT_THAT(problems_of_file("# first\n" + row.name + ": " + quoted_yaml(row.value) + "\n"),
                ::testing::StartsWith(a_path + ":2: " + message(row.name)));
  }
}

TEST(BadValuesTest, EveryTypeHasARow) {
  std::set<ValueType> covered;
  for (const Row& row : rows()) covered.insert(find_option(row.name)->values.type);
  for (const Option* option : options()) EXPECT_TRUE(covered.contains(option->values.type)) << option->name;
}

TEST(BadValuesTest, AllProblemsAreSaidAtOnce) {
  EXPECT_EQ(problems_of({{"soak", "x"}}, {{"HAULOUT_SLOTS", "y"}}, a_file("pool: [a]\nwindw: b\n")),
            "/etc/haulout/config.yaml:1: pool takes one value, not a list\n"
            "/etc/haulout/config.yaml:2: unknown key \"windw\"; did you mean window?\n"
            "invalid value \"y\" for HAULOUT_SLOTS: it must be one of lease, fleetlock, none\n"
            "invalid value \"x\" for --soak: a number is missing; write a duration like 90s, 5m or 1h30m");
}

TEST(BadValuesTest, ValuesAreShownShortAndWithoutSecrets) {
  EXPECT_THAT(problems_of({{"fleetlock-url", "http://joe:s3cret@f"}}), ::testing::Not(::testing::HasSubstr("s3cret")));
  EXPECT_LT(problems_of({{"slots", std::string(5000, 'x')}}).size(), 300u);
  EXPECT_THAT(problems_of({{"slots", "a\x1b[31m\nb"}}), ::testing::Not(::testing::HasSubstr("\x1b")));
}

}  // namespace
}  // namespace haulout::agent
