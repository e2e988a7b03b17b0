// The configuration of `haulout agent`, as plain data. The defaults are those of docs/configuration.md, which is made
// from option_table.hpp. read_config() fills it, and checks every value and the combinations of values. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/node/node_cordon.hpp"
#include "agent/process/logging.hpp"
#include "drain/options.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

enum class AuthorityChoice { automatic, impersonation, kubelet, policies, service_account };
enum class SlotsChoice { lease, fleetlock, none };
enum class BackendChoice { automatic, debian, file, command, bottlerocket, flatcar, rpm_ostree };
enum class RebootMethod { logind, systemd, command, none };
// What happens after a hook failed or ran out of time: the update stops, or goes on.
enum class HookFailure { stop, go_on };
// The verdict of the alert gate if Prometheus does not answer. With `closed` the node waits.
enum class FailMode { closed, open };

// Excludes the alerts of kube-prometheus that fire permanently or mean no problem. Watchdog fires always, to prove that
// alerts arrive. InfoInhibitor mutes other alerts. Alerts of severity info or none report no problem.
inline constexpr const char* default_prometheus_query =
    R"(ALERTS{alertstate="firing",alertname!="Watchdog",alertname!="InfoInhibitor",severity!="info",severity!="none"})";

struct AgentConfig {
  // The agent and its node.
  std::string config_file = "/etc/haulout/config.yaml";
  std::string node_name;  // if empty, the node of the credential
  std::string ns = "haulout";
  std::string kubeconfig;  // if empty, the agent looks for it
  AuthorityChoice authority = AuthorityChoice::automatic;
  std::string host_root = "/";  // absolute path

  // Slots.
  SlotsChoice slots = SlotsChoice::lease;
  std::string pool;                   // if empty, the pool of the node's role, see pool_of_role()
  std::string pool_label;             // key of the Node's label whose value is the pool
  std::string max_unavailable = "1";  // "3" or "10%"
  std::string zone_label;
  Duration soak = Duration::zero();
  std::string fleetlock_url;

  // The operating system.
  BackendChoice backend = BackendChoice::automatic;  // if a sentinel is given, read_config() replaces automatic
  std::string sentinel;                              // absolute path, below host_root
  std::vector<std::string> sentinel_command;
  // By exit code: whether a reboot is needed. Other exit codes mean unknown.
  std::map<int, bool> sentinel_exit_codes{{0, true}, {1, false}};
  Duration sentinel_interval = std::chrono::minutes(1);
  std::vector<RebootMethod> reboot_methods{RebootMethod::logind, RebootMethod::systemd};  // best first; `none` alone
  std::vector<std::string> reboot_command;
  Duration reboot_limit = std::chrono::minutes(10);
  Duration verify_limit = std::chrono::minutes(15);

  // Gates.
  std::vector<std::string> windows;
  std::vector<std::string> blackouts;
  std::vector<std::string> blocking_pod_selectors;
  CordonedNodes cordoned_nodes = CordonedNodes::wait;
  std::uint32_t max_reboots_per_day = 3;  // 0 disables the limit
  Duration backoff = std::chrono::minutes(5);
  std::string prometheus_url;
  std::string prometheus_query = default_prometheus_query;
  std::string prometheus_token_file;
  std::string prometheus_username;
  std::string prometheus_password_file;
  std::string prometheus_ca_file;
  std::string prometheus_cert_file;
  std::string prometheus_key_file;
  FailMode prometheus_fail_mode = FailMode::closed;
  Duration prometheus_max_age = Duration::zero();  // 0 disables the limit

  // The drain.
  std::uint32_t max_concurrent = 5;            // 0 means no limit
  Duration drain_deadline = Duration::zero();  // 0 disables it
  Duration settle = std::chrono::seconds(5);
  drain::FitPolicy check_fit = drain::FitPolicy::off;
  drain::Treatment emptydir = drain::Treatment::evict;
  drain::Treatment unmanaged = drain::Treatment::evict;
  drain::Treatment finished = drain::Treatment::skip;
  bool ignore_do_not_disrupt = false;
  drain::Treatment pinned = drain::Treatment::park;
  std::vector<std::string> leave_pods;
  std::vector<std::string> drain_order;
  bool wait_volumes = true;
  Duration volume_limit = std::chrono::minutes(2);  // 0 disables the limit
  bool end_at_volume_limit = false;
  bool serialize_volumes = false;
  Duration reattach_limit = Duration::zero();  // 0 disables the wait
  std::string max_unavailable_per_controller;  // "2" or "25%"; empty means no limit
  drain::SingleReplica single_replica = drain::SingleReplica::allow;
  Duration canary = Duration::zero();         // 0 disables it
  Duration lb_drain_wait = Duration::zero();  // 0: the drain does not touch load balancers

  // Hooks.
  std::string hooks_dir = "/etc/haulout/hooks.d";
  Duration hook_limit = std::chrono::minutes(5);
  HookFailure hook_failure = HookFailure::stop;

  // Reporting.
  std::string metrics_address;  // if empty, the agent opens no port
  LogFormat log_format = LogFormat::text;
  std::uint32_t verbosity = 0;

  // Modes that replace the normal work of the agent.
  bool check = false;
  bool release = false;

  bool operator==(const AgentConfig&) const = default;
};

}  // namespace haulout::agent
