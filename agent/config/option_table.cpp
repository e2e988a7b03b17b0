#include "agent/config/option_table.hpp"

#include "agent/node/remembered.hpp"

namespace haulout::agent {
namespace {

using C = AgentConfig;
using drain::FitPolicy;
using drain::Treatment;

constexpr std::uint32_t many = 1'000'000;

OptionGroup agent_and_node() {
  using A = AuthorityChoice;
  return {"The agent and its node",
          {
              {"config", text(&C::config_file, "file"), "/etc/haulout/config.yaml",
               "The configuration file. A file that is named must exist; the default file need not.",
               Option::Home::flag_and_environment},
              {"node-name", text(&C::node_name, "name", check_node_name), "",
               "The Node that this agent manages. Without this option: the Node to which its credential is bound."},
              {"namespace", text(&C::ns, "name", check_dns_label), "haulout",
               "The namespace of the fleet's Leases and of the ConfigMap haulout.", Option::Home::everywhere, 'n'},
              {"kubeconfig", text(&C::kubeconfig, "file"), "",
               "The kubeconfig file. Without this option: $KUBECONFIG, the pod's ServiceAccount or the kubelet's "
               "kubeconfig, in this order."},
              {"authority",
               choice<A>(&C::authority, {{"auto", A::automatic},
                                         {"impersonation", A::impersonation},
                                         {"kubelet", A::kubelet},
                                         {"policies", A::policies},
                                         {"serviceaccount", A::service_account}}),
               "auto",
               "How the API server restricts this agent to its own Node. auto: kubelet with a kubelet's credentials, "
               "otherwise impersonation or policies, whichever works; if none does, the agent does not start. "
               "serviceaccount: no restriction, so the agent could change every Node."},
              {"host-root", text(&C::host_root, "directory", check_absolute_path), "/",
               "The directory where the container has mounted the file system of the host. The agent looks for every "
               "file of the host beneath it: boot id, os-release, sentinels, sockets and the system bus."},
          }};
}

OptionGroup turns() {
  using S = SlotsChoice;
  return {"Slots",
          {
              {"slots", choice<S>(&C::slots, {{"lease", S::lease}, {"fleetlock", S::fleetlock}, {"none", S::none}}),
               "lease",
               "Where a node gets its slot, the permission to be unavailable for its update. lease: Leases in the "
               "namespace. fleetlock: a FleetLock server, for credentials that may not write Leases. none: no slots, "
               "for a machine on its own."},
              {"pool", text(&C::pool, "name", check_dns_label), "",
               "The pool of this node, whose nodes share the slots; with FleetLock the group. Without this option: "
               "control-plane for nodes with the label node-role.kubernetes.io/control-plane, of which only one at a "
               "time may be unavailable whatever max-unavailable says, and default for all others. With FleetLock: "
               "default for all."},
              {"pool-label", text(&C::pool_label, "label key", check_label_key), "",
               "Take the name of the pool from this label of the Node."},
              {"max-unavailable", number_or_percentage(&C::max_unavailable, "nodes", check_max_unavailable), "1",
               "How many nodes of the pool may be unavailable at the same time: a number, or a percentage of the pool. "
               "0 allows none, so no node is updated. Nodes that are NotReady, degraded, or cordoned by others than "
               "their agent count, too."},
              {"zone-label", text(&C::zone_label, "label key", check_label_key), "",
               "Also apply max-unavailable to the nodes of the pool in each zone, which is the value of this label, "
               "for example topology.kubernetes.io/zone. Use it with a percentage."},
              {"soak", duration(&C::soak, Zero::allowed), "0s",
               "How long an updated node must stay Ready before it releases its slot."},
              {"fleetlock-url", text(&C::fleetlock_url, "URL", check_url), "", "URL of the FleetLock server."},
          }};
}

OptionGroup operating_system() {
  using B = BackendChoice;
  using M = RebootMethod;
  return {"The operating system",
          {
              {"backend",
               choice<B>(&C::backend, {{"auto", B::automatic},
                                       {"debian", B::debian},
                                       {"file", B::file},
                                       {"command", B::command},
                                       {"bottlerocket", B::bottlerocket},
                                       {"flatcar", B::flatcar},
                                       {"rpm-ostree", B::rpm_ostree}}),
               "auto",
               "How to detect that a reboot is required. auto: file if a sentinel is given, command if a "
               "sentinel-command is given, otherwise according to the operating system of the host."},
              {"sentinel", text(&C::sentinel, "file", check_absolute_path), "",
               "For backend file: a reboot is needed while this file exists on the host."},
              {"sentinel-command", command(&C::sentinel_command), "",
               "For backend command: a program, with arguments, whose exit code says whether a reboot is needed. The "
               "agent runs it without a shell."},
              {"sentinel-exit-codes", exit_codes(&C::sentinel_exit_codes), "0=yes,1=no",
               "What the exit codes of sentinel-command mean. With any other code it is unknown whether a reboot is "
               "needed, and the node is not rebooted."},
              {"sentinel-interval", duration(&C::sentinel_interval, Zero::refused), "1m",
               "How often the agent runs sentinel-command."},
              {"reboot-method",
               choices<M>(&C::reboot_methods,
                          {{"logind", M::logind}, {"systemd", M::systemd}, {"command", M::command}, {"none", M::none}}),
               "logind,systemd",
               "The ways to reboot, in order of preference. If one does not bring the machine down, the agent tries "
               "the next. none: another program or a person reboots nodes that are ready."},
              {"reboot-command", command(&C::reboot_command), "",
               "For reboot-method command: the program, with arguments, that reboots the host. The agent runs it "
               "without a shell. If it still runs after reboot-limit, it gets SIGTERM, and SIGKILL ten seconds later."},
              {"reboot-limit", duration(&C::reboot_limit, Zero::refused), "10m",
               "How long a machine may take to go down after a reboot was accepted. Then the reboot has failed."},
              {"verify-limit", duration(&C::verify_limit, Zero::refused), "15m",
               "How long a booted node may take to become Ready with the expected version. Then it is degraded."},
          }};
}

OptionGroup gates() {
  using F = FailMode;
  return {
      "When an update may begin",
      {
          {"window", list(&C::windows, "start + duration", check_window), "",
           "A time in which nodes may be updated, like \"Sat,Sun 01:00+6h Europe/Berlin\". Several may be given. "
           "Without any, nodes may be updated at any time."},
          {"blackout", list(&C::blackouts, "start + duration", check_blackout), "",
           "A time in which no node is updated, whatever the windows say, like \"2026-12-20..2027-01-03\". Several may "
           "be given."},
          {"blocking-pod-selector", list(&C::blocking_pod_selectors, "label selector", check_label_selector), "",
           "A node with a pod that matches waits until the pod has ended. Several may be given."},
          {"cordoned-nodes",
           choice<CordonedNodes>(&C::cordoned_nodes,
                                 {{"wait", CordonedNodes::wait}, {"update", CordonedNodes::update}}),
           "wait",
           "What to do with a node that a person has cordoned, with kubectl, haulout cordon or haulout drain. wait: "
           "leave it alone until it is uncordoned. update: update it; it stays cordoned."},
          {"max-reboots-per-day", number(&C::max_reboots_per_day, "reboots in 24 hours", 0, remembered_updates), "3",
           "How often one node may be rebooted within 24 hours. If it needs another reboot, it becomes degraded "
           "instead; 0 disables the limit."},
          {"backoff", duration(&C::backoff, Zero::refused), "5m",
           "How long to wait after a failed drain before the next attempt. The time doubles with each failure, up to "
           "an hour."},
          {"prometheus-url", text(&C::prometheus_url, "URL", check_url), "",
           "URL of a Prometheus whose alerts block updates."},
          {"prometheus-query", text(&C::prometheus_query, "PromQL", check_not_blank), default_prometheus_query,
           "The query for alerts: each series in the answer blocks the node. $node stands for the name of the node."},
          {"prometheus-token-file", text(&C::prometheus_token_file, "file", check_absolute_path), "",
           "A file with the bearer token for Prometheus. The agent reads it again when it changes."},
          {"prometheus-username", text(&C::prometheus_username, "name", check_not_blank), "",
           "The user name for Prometheus."},
          {"prometheus-password-file", text(&C::prometheus_password_file, "file", check_absolute_path), "",
           "A file with that user's password."},
          {"prometheus-ca-file", text(&C::prometheus_ca_file, "file", check_absolute_path), "",
           "A file with the CA certificates for Prometheus. Without this option: those of the system."},
          {"prometheus-cert-file", text(&C::prometheus_cert_file, "file", check_absolute_path), "",
           "A file with the client certificate for Prometheus."},
          {"prometheus-key-file", text(&C::prometheus_key_file, "file", check_absolute_path), "",
           "A file with the key of that certificate."},
          {"prometheus-fail-mode", choice<F>(&C::prometheus_fail_mode, {{"closed", F::closed}, {"open", F::open}}),
           "closed", "What to do while Prometheus does not answer. closed: nodes wait. open: updates may begin."},
          {"prometheus-max-age", duration(&C::prometheus_max_age, Zero::allowed), "0s",
           "An alert that has fired for longer than this blocks no node any more. 0: it blocks for as long as it "
           "fires."},
      }};
}

OptionGroup the_drain() {
  using T = Treatment;
  using S = drain::SingleReplica;
  return {"The drain",
          {
              {"max-concurrent", number_or_word(&C::max_concurrent, "pods", "unlimited", many), "5",
               "How many pods may be evicted or terminating at the same time."},
              {"drain-deadline", duration(&C::drain_deadline, Zero::allowed), "0s",
               "How long a drain may take. Then the agent cancels it, uncordons the node and tries again later; 0 "
               "disables the limit."},
              {"settle", duration(&C::settle, Zero::allowed), "5s",
               "How long the node must have been cordoned and empty before it counts as drained. Pods that were being "
               "scheduled arrive late."},
              {"check-fit",
               choice<FitPolicy>(&C::check_fit, {{"off", FitPolicy::off},
                                                 {"warn", FitPolicy::warn},
                                                 {"block", FitPolicy::block},
                                                 {"require", FitPolicy::require}}),
               "off",
               "Check before a drain whether the pods fit on other nodes. warn: report the pods that do not fit, or "
               "for which it is unknown. block: do not drain while a pod does not fit. require: drain only if all are "
               "known to fit. Each check lists all nodes and pods of the cluster."},
              {"emptydir", choice<T>(&C::emptydir, {{"evict", T::evict}, {"refuse", T::refuse}}), "evict",
               "What to do with pods that use emptyDir. Their local data is deleted with them."},
              {"unmanaged", choice<T>(&C::unmanaged, {{"evict", T::evict}, {"refuse", T::refuse}, {"skip", T::skip}}),
               "evict", "What to do with pods without a controller. Nothing creates them again."},
              {"finished", choice<T>(&C::finished, {{"skip", T::skip}, {"evict", T::evict}}), "skip",
               "What to do with pods that have Succeeded or Failed."},
              {"ignore-do-not-disrupt", boolean(&C::ignore_do_not_disrupt), "false",
               "Evict pods that are annotated do-not-disrupt or safe-to-evict=false, instead of waiting for them."},
              {"pinned", choice<T>(&C::pinned, {{"wait", T::park}, {"leave", T::skip}}), "wait",
               "What to do with pods that their controller creates on the cordoned node again and again, because they "
               "tolerate every taint or are bound to the node. wait: wait until a person changes that. leave: they "
               "stay and go down with the machine, and an Event names them."},
              {"leave-pods", list(&C::leave_pods, "label selector", check_label_selector), "",
               "Pods that match stay on the node and go down with the machine. The agent neither evicts them nor waits "
               "for them. Several may be given."},
              {"drain-order", list(&C::drain_order, "SELECTOR=NUMBER", check_drain_order), "",
               "The order of evictions: pods with lower numbers are evicted first, like \"app=db=10\" for pods with "
               "the label app=db. All other pods have 0. Several may be given, and the first that selects a pod "
               "counts. A pod's own annotation haulout.dev/drain-order takes precedence."},
              {"wait-volumes", boolean(&C::wait_volumes), "true",
               "Before the reboot, wait until the VolumeAttachments of the evicted pods are deleted. If the agent has "
               "no permission to list them when it starts, as with a kubelet's credentials, it logs a warning and does "
               "not wait. If it loses the permission later, it starts no drain."},
              {"volume-limit", duration(&C::volume_limit, Zero::allowed), "2m",
               "Report a volume as stuck if it is still attached this long after its last pod was deleted. 0 disables "
               "the report."},
              {"stuck-volume", choice<bool>(&C::end_at_volume_limit, {{"wait", false}, {"fail", true}}), "wait",
               "What to do about a stuck volume. wait: the drain continues to wait for it. fail: the agent ends the "
               "drain, uncordons the node and tries again later."},
              {"serialize-volumes", boolean(&C::serialize_volumes), "false",
               "Evict pods whose volumes belong to the same CSI driver one at a time, for storage that attaches and "
               "detaches slowly. The next pod follows when the one before is deleted and its volumes are detached, or "
               "are stuck (`--volume-limit`). If the agent has no permission to list VolumeAttachments when it starts, "
               "it evicts these pods side by side, and reports that."},
              {"reattach-limit", duration(&C::reattach_limit, Zero::allowed), "0s",
               "When the volumes of a pod are detached, wait up to this long until another node has attached them, "
               "before the next pod of that driver is evicted (`--serialize-volumes`) and before the drain ends. When "
               "the time is over, the agent warns and the drain continues. 0: do not wait."},
              {"max-unavailable-per-controller",
               number_or_percentage(&C::max_unavailable_per_controller, "pods", check_share), "",
               "How many pods of a controller may be evicted without a Ready replacement: a number, or a percentage of "
               "its replicas (rounded down, but at least one). PodDisruptionBudgets still apply, and nothing is "
               "written to the cluster for it. Requires additional RBAC permissions (kustomize component guards): see "
               "[guards](guards.md)."},
              {"single-replica",
               choice<S>(&C::single_replica, {{"allow", S::allow}, {"warn", S::warn}, {"block", S::block}}), "allow",
               "What to do with a pod that is the only one of its controller. allow: evict it. warn: evict it and "
               "warn. block: do not drain the node. Requires additional RBAC permissions (kustomize component guards): "
               "see [guards](guards.md)."},
              {"canary", duration(&C::canary, Zero::allowed), "0s",
               "Evict one pod of each controller first, and the others when its replacement is scheduled, or after "
               "this time. No further pod is evicted while a replacement cannot be scheduled. 0: off. Requires "
               "additional RBAC permissions (kustomize component guards): see [guards](guards.md)."},
              {"lb-drain-wait", duration(&C::lb_drain_wait, Zero::allowed), "0s",
               "Exclude the node from external load balancers, and wait this long before the first eviction. 0: do not "
               "exclude it."},
          }};
}

OptionGroup hooks() {
  using F = HookFailure;
  return {"Hooks",
          {
              {"hooks-dir", text(&C::hooks_dir, "directory", check_absolute_path), "/etc/haulout/hooks.d",
               "The directory of executables to run before and after the drain, after the boot and before the slot is "
               "released. It need not exist."},
              {"hook-limit", duration(&C::hook_limit, Zero::refused), "5m", "How long one hook may take."},
              {"hook-failure", choice<F>(&C::hook_failure, {{"stop", F::stop}, {"continue", F::go_on}}), "stop",
               "Whether the update stops or continues after a hook that failed or took too long."},
          }};
}

OptionGroup reporting() {
  using L = LogFormat;
  return {"Reporting",
          {
              {"metrics-address", text(&C::metrics_address, "address:port", check_listen_address), "",
               "Where to serve /metrics, /healthz and /readyz. Without this option they are not served."},
              {"log-format", choice<L>(&C::log_format, {{"text", L::text}, {"json", L::json}}), "text",
               "The format of the log on stderr."},
              {"verbosity", number(&C::verbosity, "level", 0, 10), "0",
               "How much to log: 0 transitions and warnings, 1 also requests, 2 everything.", Option::Home::everywhere,
               'v'},
          }};
}

OptionGroup instead() {
  return {"One-time commands",
          {
              {"check", boolean(&C::check), "false",
               "Check the configuration and test permissions, D-Bus and back end without changing anything, then exit.",
               Option::Home::flag_only},
              {"release", boolean(&C::release), "false",
               "Remove Haulout from this node, then exit: uncordon it if Haulout cordoned it, release its slot, delete "
               "Haulout's labels and annotations. Stop the agent first.",
               Option::Home::flag_only},
          }};
}

}  // namespace

std::string Option::variable() const {
  std::string result(variable_prefix);
  for (const char c : name) result += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return result;
}

bool Option::empty_resets() const {
  if (values.type == ValueType::number_or_percentage) return shown_default.empty();  // empty means off
  return values.type == ValueType::text || values.type == ValueType::list || values.type == ValueType::command;
}

const std::vector<OptionGroup>& option_groups() {
  static const std::vector<OptionGroup> groups = {agent_and_node(), turns(), operating_system(), gates(),
                                                  the_drain(),      hooks(), reporting(),        instead()};
  return groups;
}

std::vector<const Option*> options() {
  std::vector<const Option*> all;
  for (const OptionGroup& group : option_groups())
    for (const Option& option : group.options) all.push_back(&option);
  return all;
}

const Option* find_option(std::string_view name) {
  for (const Option* option : options())
    if (option->name == name) return option;
  return nullptr;
}

}  // namespace haulout::agent
