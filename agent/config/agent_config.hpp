// The configuration of `haulout agent`, as plain data. It contains the defaults of the agent's options; those of the
// drain are in drain/options.hpp. Help and docs/configuration.md show them. read_config() fills the struct, and checks
// every value and the combinations of values. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/gates/gate.hpp"
#include "agent/hooks/hooks.hpp"
#include "agent/lifecycle/advance.hpp"
#include "agent/node/node_cordon.hpp"
#include "agent/process/logging.hpp"
#include "drain/options.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

// Values of --authority, --slots and --backend. `automatic`: the agent finds out what fits.
enum class AuthorityChoice { automatic, impersonation, kubelet, policies, service_account };
enum class SlotsChoice { lease, fleetlock, none };
enum class BackendChoice {
  automatic,
  debian,
  file,
  command,
  bottlerocket,
  flatcar,
  rpm_ostree,
  bootc,
  ostree,
  transactional_update,
  rauc,
  sysupdate
};
// When the agent installs the updates of the operating system, and which ones.
enum class UpdateChoice { off, before_drain, after_drain };
enum class UpdatePackages { all, security };
// What follows if services still use replaced files after an installation, although others were restarted.
enum class UpdateServices { report, reboot };
// Ways to reboot the machine: the values of --reboot-method.
enum class RebootMethod { logind, systemd, kexec, command, none };
// What happens after a hook has failed or exceeded its limit: the update stops, or continues.
enum class HookFailure { stop, go_on };
// The state of the alert gate if Prometheus does not answer. With `closed` the node waits.
enum class FailMode { closed, open };

inline constexpr const char* default_config_file = "/etc/haulout/config.yaml";

// The default query of the alert gate. It leaves out alerts of kube-prometheus that always fire or report no problem:
// Watchdog always fires, to show that alerts are delivered; InfoInhibitor only mutes other alerts; alerts of severity
// info or none report no problem.
inline constexpr const char* default_prometheus_query =
    R"(ALERTS{alertstate="firing",alertname!="Watchdog",alertname!="InfoInhibitor",severity!="info",severity!="none"})";

struct AgentConfig {
  // Options that identify the agent and its node.
  std::string config_file = default_config_file;
  std::string node_name;  // if empty, the agent uses the node to which its credential is bound
  std::string ns = "haulout";
  std::string kubeconfig;  // if empty: $KUBECONFIG, the pod's ServiceAccount or the kubelet's kubeconfig
  AuthorityChoice authority = AuthorityChoice::automatic;
  std::string host_root = "/";  // absolute path of the directory where the host's file system is mounted

  // Slots: how many nodes may be updated at the same time.
  SlotsChoice slots = SlotsChoice::lease;
  // If empty, the pool is the value of the label `pool_label`. If that option is empty, too, the node's role decides
  // (pool_of_role()), except with FleetLock: then the pool is `default`.
  std::string pool;
  std::string pool_label;             // key of the Node's label whose value is the pool
  std::string max_unavailable = "1";  // number or percentage of nodes, for example "3" or "10%"
  std::string zone_label;
  std::string ramp;  // sizes of the waves of a roll-out, for example "1,2,5%"; empty: no waves
  // Number of failed nodes at which a roll-out halts; 0: a failed node halts its wave and closes the gate "fleet".
  std::uint32_t halt_after = 0;
  std::string roll_out_order = "any";  // which of the nodes that wait goes first, see agent/node/roll_out_order.hpp
  Duration soak = LifecycleTimes{}.soak;
  std::string fleetlock_url;

  // How the agent detects that a reboot is needed, and how it reboots the machine.
  // `automatic` means `file` if `sentinel` is set, `command` if `sentinel_command` is set, otherwise what fits the
  // host.
  BackendChoice backend = BackendChoice::automatic;
  std::string sentinel;  // absolute path on the host, which the agent looks up below host_root
  std::vector<std::string> sentinel_command;
  // Whether each exit code of sentinel_command means that a reboot is needed. Any other code means that this is
  // unknown.
  std::map<int, bool> sentinel_exit_codes{{0, true}, {1, false}};
  Duration sentinel_interval = std::chrono::minutes(1);
  std::vector<RebootMethod> reboot_methods{RebootMethod::logind, RebootMethod::systemd};  // tried in this order
  std::vector<std::string> reboot_command;
  UpdateChoice update = UpdateChoice::off;
  std::string update_bundle;  // for back end rauc: the bundle that --update installs, a URL or a file of the host
  std::string pin;            // the only version that is installed; empty: any
  UpdatePackages update_packages = UpdatePackages::all;
  UpdateServices update_services = UpdateServices::report;
  Duration update_limit = LifecycleTimes{}.update_limit;
  std::uint32_t update_attempts = default_update_attempts;
  Duration reboot_limit = LifecycleTimes{}.reboot_limit;
  Duration verify_limit = LifecycleTimes{}.verify_limit;
  bool hold_autoscalers = true;
  std::string waiting_taint;                   // KEY[=VALUE]; empty: no taint. See agent/node/waiting_taint.hpp
  std::vector<std::string> verify_conditions;  // see agent/node/readiness.hpp

  // Gates: conditions that must be open before an update begins.
  std::vector<std::string> windows;
  std::vector<std::string> blackouts;
  std::vector<std::string> blocking_pod_selectors;
  CordonedNodes cordoned_nodes = CordonedNodes::wait;
  std::uint32_t max_reboots_per_day = default_reboots_per_day;  // 0: no limit
  Duration backoff = LifecycleTimes{}.backoff;
  std::string prometheus_url;
  std::string prometheus_query = default_prometheus_query;
  std::string prometheus_token_file;
  std::string prometheus_username;
  std::string prometheus_password_file;
  std::string prometheus_ca_file;
  std::string prometheus_cert_file;
  std::string prometheus_key_file;
  FailMode prometheus_fail_mode = FailMode::closed;
  Duration prometheus_max_age = Duration::zero();  // older alerts do not block; 0: alerts of any age block

  // How the agent drains its node.
  drain::Options drain = drain::agent_defaults();
  Duration lb_drain_wait = Duration::zero();  // wait after the exclusion from load balancers; 0: no exclusion

  // Hooks: programs on the host that the agent runs during an update, and annotations that other programs answer. The
  // limit and the failure rule apply to both.
  std::string hooks_dir = "/etc/haulout/hooks.d";
  Duration hook_limit = HookRules{}.limit;
  HookFailure hook_failure = HookFailure::stop;

  // Metrics and log.
  std::string metrics_address;  // address on which the agent serves metrics; if empty, it opens no port
  LogFormat log_format = LogFormat::text;
  std::uint32_t verbosity = 0;

  // Modes that replace the normal work of the agent.
  bool check = false;
  bool release = false;

  bool operator==(const AgentConfig&) const = default;
};

}  // namespace haulout::agent
