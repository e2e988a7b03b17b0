#include "agent/config/option_table.hpp"

#include <algorithm>
#include <tuple>

#include "tests/agent/config/support.hpp"

namespace haulout::agent {
namespace {

using ::testing::IsSupersetOf;
using ::testing::MatchesRegex;

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Option* option : options()) all.push_back(option->name);
  return all;
}

TEST(OptionTableTest, HasTheOptionsThatScriptsRelyOn) {
  EXPECT_THAT(
      names(),
      IsSupersetOf(
          {"config",          "node-name",       "namespace",     "kubeconfig", "authority",  "pool",
           "max-unavailable", "slots",           "fleetlock-url", "backend",    "sentinel",   "sentinel-command",
           "reboot-method",   "reboot-command",  "host-root",     "hooks-dir",  "window",     "soak",
           "max-concurrent",  "drain-deadline",  "settle",        "emptydir",   "unmanaged",  "finished",
           "prometheus-url",  "metrics-address", "log-format",    "pool-label", "zone-label", "lb-drain-wait",
           "check",           "release"}));
}

TEST(OptionTableTest, EveryRowIsWhole) {
  std::set<std::string> seen;
  std::set<char> letters;
  for (const Option* option : options()) {
    EXPECT_THAT(option->name, MatchesRegex("[a-z]+(-[a-z]+)*"));
    EXPECT_TRUE(seen.insert(option->name).second) << option->name << " stands twice in the table";
    EXPECT_TRUE(option->letter == 0 || letters.insert(option->letter).second) << option->letter;
    EXPECT_NE(option->values.form, "") << option->name;
    EXPECT_TRUE(option->meaning.ends_with('.')) << option->name << " needs a sentence";
    EXPECT_EQ(option->meaning.find('\n'), std::string::npos) << option->name;
    const bool counts =
        option->values.type == ValueType::number || option->values.type == ValueType::number_or_percentage;
    EXPECT_EQ(counts, !option->values.unit.empty())
        << option->name << ": a number says what it counts, nothing else does";
    EXPECT_EQ(find_option(option->name), option);
  }
  EXPECT_EQ(find_option("windows"), nullptr);
}

TEST(OptionTableTest, TheShownDefaultIsTheDefault) {
  for (const Option* option : options()) {
    AgentConfig config;
    if (option->shown_default().empty()) {
      EXPECT_TRUE(option->empty_resets()) << option->name << " has a default and does not show it";
      continue;
    }
    EXPECT_EQ(option->values.set(config, option->shown_default()), "") << option->name;
    EXPECT_EQ(config, AgentConfig()) << option->name << "=" << option->shown_default() << " changes the default";
  }
}

TEST(OptionTableTest, VariablesAreNamedAfterOptions) {
  EXPECT_EQ(find_option("pool")->variable(), "HAULOUT_POOL");
  EXPECT_EQ(find_option("lb-drain-wait")->variable(), "HAULOUT_LB_DRAIN_WAIT");
}

// The fields of the configuration. If AgentConfig gets a new field, this function does not compile until the field is
// added here. EveryOptionSetsItsField then fails until the field has a row. The fields of the drain options are tested
// elsewhere, beside their own table.
auto fields_of(const AgentConfig& config) {
  const auto& [config_file, node_name, ns, kubeconfig, authority, host_root, slots, pool, pool_label, max_unavailable,
               zone_label, ramp, halt_after, roll_out_order, soak, fleetlock_url, backend, sentinel, sentinel_command,
               sentinel_exit_codes, sentinel_interval, reboot_methods, reboot_command, update, update_bundle, pin,
               update_packages, update_services, update_limit, update_attempts, reboot_limit, verify_limit,
               hold_autoscalers, waiting_taint, verify_conditions, windows, blackouts, blocking_pod_selectors,
               cordoned_nodes, max_reboots_per_day, backoff, prometheus_url, prometheus_query, prometheus_token_file,
               prometheus_username, prometheus_password_file, prometheus_ca_file, prometheus_cert_file,
               prometheus_key_file, prometheus_fail_mode, prometheus_max_age, drain, lb_drain_wait, hooks_dir,
               hook_limit, hook_failure, metrics_address, log_format, verbosity, check, release] = config;
  return std::tie(
      config_file, node_name, ns, kubeconfig, authority, host_root, slots, pool, pool_label, max_unavailable,
      zone_label, ramp, halt_after, roll_out_order, soak, fleetlock_url, backend, sentinel, sentinel_command,
      sentinel_exit_codes, sentinel_interval, reboot_methods, reboot_command, update, update_bundle, pin,
      update_packages, update_services, update_limit, update_attempts, reboot_limit, verify_limit, hold_autoscalers,
      waiting_taint, verify_conditions, windows, blackouts, blocking_pod_selectors, cordoned_nodes, max_reboots_per_day,
      backoff, prometheus_url, prometheus_query, prometheus_token_file, prometheus_username, prometheus_password_file,
      prometheus_ca_file, prometheus_cert_file, prometheus_key_file, prometheus_fail_mode, prometheus_max_age, drain,
      lb_drain_wait, hooks_dir, hook_limit, hook_failure, metrics_address, log_format, verbosity, check, release);
}

template <std::size_t... I>
std::vector<bool> changed(const AgentConfig& from, const AgentConfig& to, std::index_sequence<I...>) {
  const auto left = fields_of(from);
  const auto right = fields_of(to);
  return {!(std::get<I>(left) == std::get<I>(right))...};
}

constexpr std::size_t number_of_fields = std::tuple_size_v<decltype(fields_of(AgentConfig()))>;

struct Row {
  std::string name;
  std::string value;
  std::function<bool(const AgentConfig&)> holds;
};

// Each option sets its own field and no other.
TEST(OptionTableTest, EveryOptionSetsItsField) {
  using C = AgentConfig;
  using namespace std::chrono_literals;
  using drain::Treatment;
  using Strings = std::vector<std::string>;
  const std::vector<Row> rows = {
      {"config", "/c", [](const C& c) { return c.config_file == "/c"; }},
      {"node-name", "n1.example.com", [](const C& c) { return c.node_name == "n1.example.com"; }},
      {"namespace", "ops", [](const C& c) { return c.ns == "ops"; }},
      {"kubeconfig", "k", [](const C& c) { return c.kubeconfig == "k"; }},
      {"authority", "impersonation", [](const C& c) { return c.authority == AuthorityChoice::impersonation; }},
      {"authority", "kubelet", [](const C& c) { return c.authority == AuthorityChoice::kubelet; }},
      {"authority", "policies", [](const C& c) { return c.authority == AuthorityChoice::policies; }},
      {"authority", "serviceaccount", [](const C& c) { return c.authority == AuthorityChoice::service_account; }},
      {"host-root", "/host", [](const C& c) { return c.host_root == "/host"; }},
      {"slots", "fleetlock", [](const C& c) { return c.slots == SlotsChoice::fleetlock; }},
      {"slots", "none", [](const C& c) { return c.slots == SlotsChoice::none; }},
      {"pool", "workers", [](const C& c) { return c.pool == "workers"; }},
      {"pool-label", "example.com/pool", [](const C& c) { return c.pool_label == "example.com/pool"; }},
      {"max-unavailable", "25%", [](const C& c) { return c.max_unavailable == "25%"; }},
      {"zone-label", "zone", [](const C& c) { return c.zone_label == "zone"; }},
      {"ramp", "1,2,25%", [](const C& c) { return c.ramp == "1,2,25%"; }},
      {"halt-after", "3", [](const C& c) { return c.halt_after == 3; }},
      {"roll-out-order", "zone", [](const C& c) { return c.roll_out_order == "zone"; }},
      {"soak", "2m", [](const C& c) { return c.soak == Duration(2min); }},
      {"fleetlock-url", "http://f:80/x", [](const C& c) { return c.fleetlock_url == "http://f:80/x"; }},
      {"backend", "debian", [](const C& c) { return c.backend == BackendChoice::debian; }},
      {"backend", "file", [](const C& c) { return c.backend == BackendChoice::file; }},
      {"backend", "command", [](const C& c) { return c.backend == BackendChoice::command; }},
      {"backend", "bottlerocket", [](const C& c) { return c.backend == BackendChoice::bottlerocket; }},
      {"backend", "flatcar", [](const C& c) { return c.backend == BackendChoice::flatcar; }},
      {"backend", "rpm-ostree", [](const C& c) { return c.backend == BackendChoice::rpm_ostree; }},
      {"backend", "ostree", [](const C& c) { return c.backend == BackendChoice::ostree; }},
      {"sentinel", "/run/s", [](const C& c) { return c.sentinel == "/run/s"; }},
      {"sentinel-command", "/bin/s -r 'a b'",
       [](const C& c) { return c.sentinel_command == Strings{"/bin/s", "-r", "a b"}; }},
      {"sentinel-exit-codes", "0=no,102=yes",
       [](const C& c) { return c.sentinel_exit_codes == std::map<int, bool>{{0, false}, {102, true}}; }},
      {"sentinel-interval", "9s", [](const C& c) { return c.sentinel_interval == Duration(9s); }},
      {"reboot-method", "command",
       [](const C& c) { return c.reboot_methods == std::vector<RebootMethod>{RebootMethod::command}; }},
      {"reboot-method", "systemd, logind",
       [](const C& c) {
         return c.reboot_methods == std::vector<RebootMethod>{RebootMethod::systemd, RebootMethod::logind};
       }},
      {"reboot-method", "kexec, systemd",
       [](const C& c) {
         return c.reboot_methods == std::vector<RebootMethod>{RebootMethod::kexec, RebootMethod::systemd};
       }},
      {"reboot-method", "none",
       [](const C& c) { return c.reboot_methods == std::vector<RebootMethod>{RebootMethod::none}; }},
      {"reboot-command", "/sbin/r", [](const C& c) { return c.reboot_command == Strings{"/sbin/r"}; }},
      {"update", "after-drain", [](const C& c) { return c.update == UpdateChoice::after_drain; }},
      {"update-bundle", "/a.raucb", [](const C& c) { return c.update_bundle == "/a.raucb"; }},
      {"pin", "42.1 (x)", [](const C& c) { return c.pin == "42.1 (x)"; }},
      {"update-packages", "security", [](const C& c) { return c.update_packages == UpdatePackages::security; }},
      {"update-services", "reboot", [](const C& c) { return c.update_services == UpdateServices::reboot; }},
      {"update-limit", "1m", [](const C& c) { return c.update_limit == Duration(1min); }},
      {"update-attempts", "1", [](const C& c) { return c.update_attempts == 1; }},
      {"reboot-limit", "1m", [](const C& c) { return c.reboot_limit == Duration(1min); }},
      {"verify-limit", "1m", [](const C& c) { return c.verify_limit == Duration(1min); }},
      {"hold-autoscalers", "false", [](const C& c) { return !c.hold_autoscalers; }},
      {"waiting-taint", "example.com/waits=yes", [](const C& c) { return c.waiting_taint == "example.com/waits=yes"; }},
      {"verify-condition", "A=False", [](const C& c) { return c.verify_conditions == Strings{"A=False"}; }},
      {"window", "Sat 22:00+4h", [](const C& c) { return c.windows == Strings{"Sat 22:00+4h"}; }},
      {"blackout", "2026-12-24", [](const C& c) { return c.blackouts == Strings{"2026-12-24"}; }},
      {"blocking-pod-selector", "a=b,c", [](const C& c) { return c.blocking_pod_selectors == Strings{"a=b,c"}; }},
      {"max-reboots-per-day", "0", [](const C& c) { return c.max_reboots_per_day == 0; }},
      {"backoff", "10s", [](const C& c) { return c.backoff == Duration(10s); }},
      {"prometheus-url", "https://p", [](const C& c) { return c.prometheus_url == "https://p"; }},
      {"cordoned-nodes", "update", [](const C& c) { return c.cordoned_nodes == CordonedNodes::update; }},
      {"prometheus-query", "up == 0", [](const C& c) { return c.prometheus_query == "up == 0"; }},
      {"prometheus-token-file", "/t", [](const C& c) { return c.prometheus_token_file == "/t"; }},
      {"prometheus-username", "u", [](const C& c) { return c.prometheus_username == "u"; }},
      {"prometheus-password-file", "/p", [](const C& c) { return c.prometheus_password_file == "/p"; }},
      {"prometheus-ca-file", "/ca", [](const C& c) { return c.prometheus_ca_file == "/ca"; }},
      {"prometheus-cert-file", "/c", [](const C& c) { return c.prometheus_cert_file == "/c"; }},
      {"prometheus-key-file", "/k", [](const C& c) { return c.prometheus_key_file == "/k"; }},
      {"prometheus-fail-mode", "open", [](const C& c) { return c.prometheus_fail_mode == FailMode::open; }},
      {"prometheus-max-age", "1h", [](const C& c) { return c.prometheus_max_age == Duration(1h); }},
      {"max-concurrent", "1", [](const C& c) { return c.drain.max_concurrent == 1; }},
      {"max-concurrent", "unlimited", [](const C& c) { return c.drain.max_concurrent == 0; }},
      {"drain-deadline", "1h30m", [](const C& c) { return c.drain.timeout == Duration(90min); }},
      {"settle", "0", [](const C& c) { return c.drain.settle == Duration(0s); }},
      {"emptydir", "refuse", [](const C& c) { return c.drain.policy.empty_dir == Treatment::refuse; }},
      {"unmanaged", "refuse", [](const C& c) { return c.drain.policy.unmanaged == Treatment::refuse; }},
      {"unmanaged", "skip", [](const C& c) { return c.drain.policy.unmanaged == Treatment::skip; }},
      {"pinned", "leave", [](const C& c) { return c.drain.policy.pinned == Treatment::skip; }},
      {"leave-pods", "app=typha",
       [](const C& c) {
         return c.drain.policy.leave.size() == 1 && c.drain.policy.leave[0].matches({{"app", "typha"}});
       }},
      {"evict-daemonset-pods", "app=logs",
       [](const C& c) {
         return c.drain.policy.evict_daemon_sets.size() == 1 &&
                c.drain.policy.evict_daemon_sets[0].matches({{"app", "logs"}});
       }},
      {"pod-rule", "kind:Job=wait-completed=2h",
       [](const C& c) { return c.drain.policy.rules.size() == 1 && c.drain.policy.rules[0].limit == Duration(2h); }},
      {"cluster-api-labels", "all",
       [](const C& c) { return c.drain.policy.cluster_api_labels == drain::ClusterApiLabels::all; }},
      {"gangs", "wait", [](const C& c) { return c.drain.policy.gangs == Treatment::park; }},
      {"gangs", "refuse", [](const C& c) { return c.drain.policy.gangs == Treatment::refuse; }},
      {"finished", "evict", [](const C& c) { return c.drain.policy.finished == Treatment::evict; }},
      {"ignore-do-not-disrupt", "true", [](const C& c) { return c.drain.policy.do_not_disrupt == Treatment::evict; }},
      {"drain-order", "app=db=10",
       [](const C& c) { return c.drain.order.size() == 1 && c.drain.order[0].order == 10; }},
      {"check-fit", "require", [](const C& c) { return c.drain.fit == drain::FitPolicy::require; }},
      {"wait-volumes", "false", [](const C& c) { return c.drain.volumes == drain::VolumeWait::off; }},
      {"volume-limit", "10m", [](const C& c) { return c.drain.volume_limit == Duration(10min); }},
      {"serialize-volumes", "true", [](const C& c) { return c.drain.volume_turns == drain::VolumeWait::if_permitted; }},
      {"reattach-limit", "90s", [](const C& c) { return c.drain.reattach_limit == Duration(90s); }},
      {"stuck-volume", "fail", [](const C& c) { return c.drain.end_at_volume_limit; }},
      {"max-unavailable-per-controller", "25%",
       [](const C& c) { return c.drain.guards.max_unavailable == drain::Share{25, true}; }},
      {"single-replica", "block",
       [](const C& c) { return c.drain.guards.single_replica == drain::SingleReplica::block; }},
      {"canary", "30s", [](const C& c) { return c.drain.guards.canary == Duration(30s); }},
      {"surge", "all", [](const C& c) { return c.drain.guards.surge == drain::Surge::all; }},
      {"eviction-requests", "responders",
       [](const C& c) { return c.drain.eviction_requests == drain::EvictionRequests::responders; }},
      {"eviction-request-limit", "90s", [](const C& c) { return c.drain.eviction_request_limit == Duration(90s); }},
      {"surge-limit", "90s", [](const C& c) { return c.drain.guards.surge_limit == Duration(90s); }},
      {"lb-drain-wait", "30s", [](const C& c) { return c.lb_drain_wait == Duration(30s); }},
      {"hooks-dir", "/h", [](const C& c) { return c.hooks_dir == "/h"; }},
      {"hook-limit", "1m", [](const C& c) { return c.hook_limit == Duration(1min); }},
      {"hook-failure", "continue", [](const C& c) { return c.hook_failure == HookFailure::go_on; }},
      {"metrics-address", "127.0.0.1:0", [](const C& c) { return c.metrics_address == "127.0.0.1:0"; }},
      {"log-format", "json", [](const C& c) { return c.log_format == LogFormat::json; }},
      {"verbosity", "2", [](const C& c) { return c.verbosity == 2; }},
      {"check", "true", [](const C& c) { return c.check; }},
      {"release", "true", [](const C& c) { return c.release; }},
  };
  std::set<std::string> covered;
  std::vector<bool> settable(number_of_fields);
  for (const Row& row : rows) {
    AgentConfig config;
    ASSERT_NE(find_option(row.name), nullptr) << row.name;
    EXPECT_EQ(find_option(row.name)->values.set(config, row.value), "") << row.name << "=" << row.value;
    EXPECT_TRUE(row.holds(config)) << row.name << "=" << row.value;
    EXPECT_FALSE(row.holds(AgentConfig())) << row.name << "=" << row.value << " is the default and proves nothing";
    EXPECT_NE(config, AgentConfig());
    const auto now = changed(AgentConfig(), config, std::make_index_sequence<number_of_fields>());
    EXPECT_EQ(std::count(now.begin(), now.end(), true), 1) << row.name << " sets another field, too";
    for (std::size_t i = 0; i < now.size(); ++i) settable[i] = settable[i] || now[i];
    covered.insert(row.name);
  }
  for (const std::string& name : names()) EXPECT_TRUE(covered.contains(name)) << name << " has no row here";
  for (std::size_t i = 0; i < settable.size(); ++i) EXPECT_TRUE(settable[i]) << "no option sets field " << i;
}

}  // namespace
}  // namespace haulout::agent
