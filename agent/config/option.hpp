// What `haulout agent` is told to do, as plain data; the defaults are the documented ones (docs/configuration.md, made
// from option_table.hpp). Read by read_config(), which has checked every value and what the values mean together.
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
// Of a hook that failed or ran out of time.
enum class HookFailure { stop, go_on };
// Of a Prometheus that does not answer: closed holds the node back.
enum class FailMode { closed, open };

// Of what fires for ever in kube-prometheus none is an obstacle: Watchdog proves that alerts arrive, InfoInhibitor
// mutes others, and alerts for information mean that nothing is wrong.
inline constexpr const char* default_prometheus_query =
    R"(ALERTS{alertstate="firing",alertname!="Watchdog",alertname!="InfoInhibitor",severity!="info",severity!="none"})";

struct AgentConfig {
  // The agent and its node.
  std::string config_file = "/etc/haulout/config.yaml";
  std::string node_name;  // empty: the node of the credential
  std::string ns = "haulout";
  std::string kubeconfig;  // empty: discovered
  AuthorityChoice authority = AuthorityChoice::automatic;
  std::string host_root = "/";  // absolute

  // Turns.
  SlotsChoice slots = SlotsChoice::lease;
  std::string pool;                   // empty: that of the node's role, see pool_of_role()
  std::string pool_label;             // names the label of the Node whose value is the pool
  std::string max_unavailable = "1";  // "3" or "10%"
  std::string zone_label;
  Duration soak = Duration::zero();
  std::string fleetlock_url;

  // The operating system.
  BackendChoice backend = BackendChoice::automatic;  // a sentinel without a back end has made it file or command
  std::string sentinel;                              // absolute, beneath host_root
  std::vector<std::string> sentinel_command;
  std::map<int, bool> sentinel_exit_codes{{0, true}, {1, false}};  // exit code: is a reboot needed? Others: unknown
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
  std::uint32_t max_reboots_per_day = 3;  // 0: no limit
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
  Duration prometheus_max_age = Duration::zero();  // 0: for ever

  // The drain.
  std::uint32_t max_concurrent = 5;            // 0: unlimited
  Duration drain_deadline = Duration::zero();  // 0: none
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
  Duration volume_limit = std::chrono::minutes(2);  // 0: none
  bool end_at_volume_limit = false;
  bool serialize_volumes = false;
  Duration reattach_limit = Duration::zero();  // 0: off
  std::string max_unavailable_per_controller;  // "2" or "25%"; empty: any number
  drain::SingleReplica single_replica = drain::SingleReplica::allow;
  Duration canary = Duration::zero();         // 0: off
  Duration lb_drain_wait = Duration::zero();  // 0: load balancers are left alone

  // Hooks.
  std::string hooks_dir = "/etc/haulout/hooks.d";
  Duration hook_limit = std::chrono::minutes(5);
  HookFailure hook_failure = HookFailure::stop;

  // Reporting.
  std::string metrics_address;  // empty: no port is opened
  LogFormat log_format = LogFormat::text;
  std::uint32_t verbosity = 0;

  // Instead of the agent's work.
  bool check = false;
  bool release = false;

  bool operator==(const AgentConfig&) const = default;
};

}  // namespace haulout::agent
