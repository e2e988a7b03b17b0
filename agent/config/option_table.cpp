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
  return {
      "The agent and its node",
      {
          {"config", text(&C::config_file, "file"), "/etc/haulout/config.yaml",
           "The configuration file. One that is named must exist; the default one need not.",
           Option::Home::flag_and_environment},
          {"node-name", text(&C::node_name, "name", check_node_name), "",
           "The Node this agent serves; not given: the one that its credential is bound to."},
          {"namespace", text(&C::ns, "name", check_dns_label), "haulout",
           "Where the fleet's Leases and the ConfigMap haulout are.", Option::Home::everywhere, 'n'},
          {"kubeconfig", text(&C::kubeconfig, "file"), "",
           "The kubeconfig file; not given: $KUBECONFIG, the pod's ServiceAccount, the kubelet's kubeconfig."},
          {"authority",
           choice<A>(&C::authority, {{"auto", A::automatic},
                                     {"impersonation", A::impersonation},
                                     {"kubelet", A::kubelet},
                                     {"policies", A::policies},
                                     {"serviceaccount", A::service_account}}),
           "auto",
           "How the API server restricts this agent to its own Node. auto: kubelet with a kubelet's credentials, else "
           "impersonation or policies, whichever works; the agent does not start if none does. serviceaccount: no "
           "restriction, the agent could change every Node."},
          {"host-root", text(&C::host_root, "directory", check_absolute_path), "/",
           "Every file of the host (boot id, os-release, sentinels, sockets, the system bus) is looked for beneath "
           "this "
           "directory: where a container has mounted its host."},
      }};
}

OptionGroup turns() {
  using S = SlotsChoice;
  return {
      "Turns",
      {
          {"slots", choice<S>(&C::slots, {{"lease", S::lease}, {"fleetlock", S::fleetlock}, {"none", S::none}}),
           "lease",
           "Who gives a node its turn. lease: Leases in the namespace. fleetlock: a FleetLock server, for credentials "
           "that may not write Leases. none: nobody, for a machine on its own."},
          {"pool", text(&C::pool, "name", check_dns_label), "",
           "The nodes that take turns with this one; with FleetLock the group. Not given: default, and control-plane "
           "for nodes with the label node-role.kubernetes.io/control-plane, of which one is out at a time whatever "
           "max-unavailable says; with FleetLock default for all."},
          {"pool-label", text(&C::pool_label, "label key", check_label_key), "",
           "The pool is the value of this label of the Node."},
          {"max-unavailable", number_or_percentage(&C::max_unavailable, "nodes", check_max_unavailable), "1",
           "How many nodes of the pool may be out at once: a number, or a percentage of the pool; 0: none. Nodes that "
           "are NotReady, degraded or cordoned by somebody else count."},
          {"zone-label", text(&C::zone_label, "label key", check_label_key), "",
           "Also apply max-unavailable to the pool's nodes of each value of this label, for example "
           "topology.kubernetes.io/zone. Use it with a percentage."},
          {"soak", duration(&C::soak, Zero::allowed), "0s",
           "How long an updated node must have run well before the next one gets its turn."},
          {"fleetlock-url", text(&C::fleetlock_url, "URL", check_url), "", "The FleetLock server."},
      }};
}

OptionGroup operating_system() {
  using B = BackendChoice;
  using M = RebootMethod;
  return {
      "The operating system",
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
           "How to detect that a reboot is required. auto: file or command if a sentinel or a sentinel-command is "
           "given, else by the operating system of the host."},
          {"sentinel", text(&C::sentinel, "file", check_absolute_path), "",
           "backend file: a reboot is needed while this file exists on the host."},
          {"sentinel-command", command(&C::sentinel_command), "",
           "backend command: a program, with arguments, whose exit code says whether a reboot is needed. No shell."},
          {"sentinel-exit-codes", exit_codes(&C::sentinel_exit_codes), "0=yes,1=no",
           "What the exit codes of sentinel-command mean. All others mean that nobody knows, and then nothing is "
           "rebooted."},
          {"sentinel-interval", duration(&C::sentinel_interval, Zero::refused), "1m",
           "How often sentinel-command is asked."},
          {"reboot-method",
           choices<M>(&C::reboot_methods,
                      {{"logind", M::logind}, {"systemd", M::systemd}, {"command", M::command}, {"none", M::none}}),
           "logind,systemd",
           "The ways to reboot, best first: the next one is tried when one does not bring the machine down. none: "
           "somebody else reboots nodes that are ready."},
          {"reboot-command", command(&C::reboot_command), "",
           "reboot-method command: the program, with arguments, that reboots the host. No shell. It may take as long "
           "as reboot-limit; then it gets SIGTERM, and SIGKILL ten seconds later."},
          {"reboot-limit", duration(&C::reboot_limit, Zero::refused), "10m",
           "A machine that is still up this long after a reboot was accepted is not going down."},
          {"verify-limit", duration(&C::verify_limit, Zero::refused), "15m",
           "How long a booted node has to become Ready with the version that was expected; then it is degraded."},
      }};
}

OptionGroup gates() {
  using F = FailMode;
  return {
      "When a node may go",
      {
          {"window", list(&C::windows, "start + duration", check_window), "",
           "A time in which nodes may be updated, like \"Sat,Sun 01:00+6h Europe/Berlin\"; several may be given, and "
           "without any it is always."},
          {"blackout", list(&C::blackouts, "start + duration", check_blackout), "",
           "A time in which no node is updated, whatever the windows say, like \"2026-12-20..2027-01-03\"; several may "
           "be given."},
          {"blocking-pod-selector", list(&C::blocking_pod_selectors, "label selector", check_label_selector), "",
           "A node with a pod that this matches waits until the pod is gone; several may be given."},
          {"cordoned-nodes",
           choice<CordonedNodes>(&C::cordoned_nodes,
                                 {{"wait", CordonedNodes::wait}, {"update", CordonedNodes::update}}),
           "wait",
           "A node that a person has cordoned, with kubectl, haulout cordon or haulout drain: wait: it is left alone "
           "until it is uncordoned. update: it is updated all the same and stays cordoned."},
          {"max-reboots-per-day", number(&C::max_reboots_per_day, "reboots in 24 hours", 0, remembered_updates), "3",
           "More reboots of one node than this are a loop, and the node is degraded; 0: no limit."},
          {"backoff", duration(&C::backoff, Zero::refused), "5m",
           "The wait after a drain that did not succeed; doubled each time, up to an hour."},
          {"prometheus-url", text(&C::prometheus_url, "URL", check_url), "",
           "A Prometheus whose alerts hold nodes back."},
          {"prometheus-query", text(&C::prometheus_query, "PromQL", check_not_blank), default_prometheus_query,
           "Each series in the answer holds the node back; $node in it stands for the node's name."},
          {"prometheus-token-file", text(&C::prometheus_token_file, "file", check_absolute_path), "",
           "A file with the bearer token for Prometheus; read again when it changes."},
          {"prometheus-username", text(&C::prometheus_username, "name", check_not_blank), "",
           "The user for Prometheus."},
          {"prometheus-password-file", text(&C::prometheus_password_file, "file", check_absolute_path), "",
           "A file with that user's password."},
          {"prometheus-ca-file", text(&C::prometheus_ca_file, "file", check_absolute_path), "",
           "The certificates that vouch for Prometheus; not given: those of the system."},
          {"prometheus-cert-file", text(&C::prometheus_cert_file, "file", check_absolute_path), "",
           "A client certificate for Prometheus."},
          {"prometheus-key-file", text(&C::prometheus_key_file, "file", check_absolute_path), "",
           "The key of that certificate."},
          {"prometheus-fail-mode", choice<F>(&C::prometheus_fail_mode, {{"closed", F::closed}, {"open", F::open}}),
           "closed", "While Prometheus does not answer, nodes wait (closed) or go (open)."},
          {"prometheus-max-age", duration(&C::prometheus_max_age, Zero::allowed), "0s",
           "An alert older than this holds nobody back any more; 0: it does for ever."},
      }};
}

OptionGroup the_drain() {
  using T = Treatment;
  using S = drain::SingleReplica;
  return {
      "The drain",
      {
          {"max-concurrent", number_or_word(&C::max_concurrent, "pods", "unlimited", many), "5",
           "Pods that may be on their way out at the same time."},
          {"drain-deadline", duration(&C::drain_deadline, Zero::allowed), "0s",
           "A drain that takes longer is given up: the node is uncordoned and tries again later; 0: it may take for "
           "ever."},
          {"settle", duration(&C::settle, Zero::allowed), "5s",
           "The node must have been cordoned and stayed empty at least this long: pods that were being scheduled "
           "arrive late."},
          {"check-fit",
           choice<FitPolicy>(&C::check_fit, {{"off", FitPolicy::off},
                                             {"warn", FitPolicy::warn},
                                             {"block", FitPolicy::block},
                                             {"require", FitPolicy::require}}),
           "off",
           "Before a drain, look whether the pods fit on other nodes: warn: say which do not, and which nobody can "
           "tell. block: do not drain while one does not fit. require: not unless all are known to fit. Each such look "
           "lists "
           "all nodes and pods of the cluster."},
          {"emptydir", choice<T>(&C::emptydir, {{"evict", T::evict}, {"refuse", T::refuse}}), "evict",
           "Pods that use emptyDir: their local data is lost with them."},
          {"unmanaged", choice<T>(&C::unmanaged, {{"evict", T::evict}, {"refuse", T::refuse}, {"skip", T::skip}}),
           "evict", "Pods without a controller: nothing brings them back."},
          {"finished", choice<T>(&C::finished, {{"skip", T::skip}, {"evict", T::evict}}), "skip",
           "Pods that have Succeeded or Failed."},
          {"ignore-do-not-disrupt", boolean(&C::ignore_do_not_disrupt), "false",
           "Evict pods that are annotated do-not-disrupt or safe-to-evict=false instead of waiting for them."},
          {"pinned", choice<T>(&C::pinned, {{"wait", T::park}, {"leave", T::skip}}), "wait",
           "Pods that their controller brings back to the cordoned node again and again, because they tolerate every "
           "taint or are bound to the node: wait: until somebody changes that. leave: they stay, go down with the "
           "machine, and an Event names them."},
          {"leave-pods", list(&C::leave_pods, "label selector", check_label_selector), "",
           "Pods that match stay on the node and go down with the machine: they are neither evicted nor waited for. "
           "Several may be given."},
          {"drain-order", list(&C::drain_order, "SELECTOR=NUMBER", check_drain_order), "",
           "Pods with these labels leave at that place, lower numbers first, like \"app=db=10\"; 0 is where all others "
           "are. Several may be given, the first that selects a pod counts; a pod's own annotation "
           "haulout.dev/drain-order comes before."},
          {"wait-volumes", boolean(&C::wait_volumes), "true",
           "Before the reboot, wait until the VolumeAttachments of the evicted pods are deleted. If the agent has no "
           "permission to list them when it starts, as with a kubelet's credentials, it logs a warning and does not "
           "wait. If it loses the permission later, it starts no drain."},
          {"volume-limit", duration(&C::volume_limit, Zero::allowed), "2m",
           "Report a volume as stuck if it is still attached this long after its last pod was deleted. 0: never."},
          {"stuck-volume", choice<bool>(&C::end_at_volume_limit, {{"wait", false}, {"fail", true}}), "wait",
           "What a stuck volume does: wait: the drain goes on waiting for it. fail: the drain is given up, the node is "
           "uncordoned and tries again later."},
          {"serialize-volumes", boolean(&C::serialize_volumes), "false",
           "Pods whose volumes belong to the same CSI driver leave one at a time: the next one when the one before has "
           "vanished and its volumes are detached, or are stuck (`--volume-limit`). For storage that attaches and "
           "detaches slowly. Where VolumeAttachments cannot be seen when the agent starts they leave side by side, and "
           "it is said so."},
          {"reattach-limit", duration(&C::reattach_limit, Zero::allowed), "0s",
           "Once a pod's volumes are detached here, wait up to this long until another node has them, before the next "
           "pod of that driver leaves (`--serialize-volumes`) and before the drain ends. Only advice: when the time is "
           "over there is a warning, and the drain goes on. 0: off."},
          {"max-unavailable-per-controller",
           number_or_percentage(&C::max_unavailable_per_controller, "pods", check_share), "",
           "At most so many pods of a controller, or such a part of its replicas (rounded down, but at least one), may "
           "be evicted without a Ready replacement. Nothing is written for it; budgets are respected besides. "
           "Requires additional RBAC permissions (kustomize component guards): see [guards](guards.md)."},
          {"single-replica",
           choice<S>(&C::single_replica, {{"allow", S::allow}, {"warn", S::warn}, {"block", S::block}}), "allow",
           "Pods that are the only one of their controller: allow, warn (evict them and say so) or block (the node is "
           "not drained). Requires additional RBAC permissions (kustomize component guards): see [guards](guards.md)."},
          {"canary", duration(&C::canary, Zero::allowed), "0s",
           "Evict one pod of each controller first, and the others when its replacement has found a node, or after "
           "this time; none while a replacement finds no node; 0: off. Requires additional RBAC permissions (kustomize "
           "component guards): see [guards](guards.md)."},
          {"lb-drain-wait", duration(&C::lb_drain_wait, Zero::allowed), "0s",
           "Take the node out of external load balancers and wait this long before the first eviction; 0: leave load "
           "balancers alone."},
      }};
}

OptionGroup hooks() {
  using F = HookFailure;
  return {"Hooks",
          {
              {"hooks-dir", text(&C::hooks_dir, "directory", check_absolute_path), "/etc/haulout/hooks.d",
               "Executables to run before and after the drain, after the boot and before the turn is passed on. It "
               "need not exist."},
              {"hook-limit", duration(&C::hook_limit, Zero::refused), "5m", "How long one hook may take."},
              {"hook-failure", choice<F>(&C::hook_failure, {{"stop", F::stop}, {"continue", F::go_on}}), "stop",
               "After a hook that failed or took too long the update stops, or continues."},
          }};
}

OptionGroup reporting() {
  using L = LogFormat;
  return {"Reporting",
          {
              {"metrics-address", text(&C::metrics_address, "address:port", check_listen_address), "",
               "Where /metrics, /healthz and /readyz are served; not given: nowhere."},
              {"log-format", choice<L>(&C::log_format, {{"text", L::text}, {"json", L::json}}), "text",
               "How the log on stderr is written."},
              {"verbosity", number(&C::verbosity, "level", 0, 10), "0",
               "How much to log: 0 transitions and warnings, 1 requests, 2 everything.", Option::Home::everywhere, 'v'},
          }};
}

OptionGroup instead() {
  return {"Instead of the agent's work",
          {
              {"check", boolean(&C::check), "false",
               "Check the configuration and try rights, D-Bus and back end without touching anything, then exit.",
               Option::Home::flag_only},
              {"release", boolean(&C::release), "false",
               "Remove Haulout from this node, then exit: uncordon it if Haulout cordoned it, release its turn, delete "
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
