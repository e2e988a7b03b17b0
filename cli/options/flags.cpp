#include "cli/options/flags.hpp"

#include <limits>

#include "cli/options/agent_flags.hpp"
#include "cli/options/flag_values.hpp"
#include "cli/options/people_flags.hpp"
#include "cli/options/rehearse_flags.hpp"

namespace haulout::cli {
namespace {

using flag_values::any_duration;
using flag_values::Apply;
using flag_values::boolean;
using flag_values::duration;
using flag_values::duration_or_seconds;
using flag_values::integer;
using flag_values::one_of;
using flag_values::selector_flag;
using flag_values::text;

Apply connection(std::string k8s::ConnectionFlags::* field) {
  return text([field](Settings& settings) -> std::string& { return settings.connection.*field; });
}

std::string apply_pod_selector(Settings& settings, const std::string& value) {
  auto selector = k8s::parse_label_selector(value);
  if (!selector) return selector.error().message();
  settings.drain.policy.pod_selector = *std::move(selector);
  return {};
}

std::string apply_drain_order(Settings& settings, const std::string& value) {
  auto rule = drain::parse_order_rule(value);
  if (!rule) return rule.error().message();
  settings.drain.order.push_back(*std::move(rule));
  return {};
}

std::string apply_max_concurrent(Settings& settings, const std::string& value) {
  if (value == "unlimited") {
    settings.drain.max_concurrent = 0;
    return {};
  }
  const auto set = [](Settings& target, std::int64_t count) {
    target.drain.max_concurrent = static_cast<std::size_t>(count);
  };
  const std::string wrong = integer(1, 1'000'000, set)(settings, value);
  return wrong.empty() ? wrong : wrong + ", or unlimited";
}

std::string apply_max_unavailable(Settings& settings, const std::string& value) {
  const auto share = drain::parse_share(value);
  if (!share) return share.error().message();
  settings.drain.guards.max_unavailable = *share;
  return {};
}

Flag dry_run_flag() {
  using drain::DryRunMode;
  return {
      "dry-run",
      0,
      Flag::Kind::explicit_,
      "none",
      "Must be none, client or server. client: only print what would be done, and send no change. server: send every "
      "change with dryRun=All, so that the server checks it without persisting it.",
      one_of<DryRunMode>({{"none", DryRunMode::none}, {"client", DryRunMode::client}, {"server", DryRunMode::server}},
                         [](Settings& s, DryRunMode mode) { s.drain.dry_run = mode; })};
}

// The flags that kubectl drain has, too.
std::vector<Flag> kubectl_drain_flags() {
  using drain::Treatment;
  using Kind = Flag::Kind;
  return {
      {"chunk-size", 0, Kind::value, "500",
       "Return large lists in chunks of this many objects rather than all at once. 0 disables chunks.",
       integer(0, std::numeric_limits<std::uint32_t>::max(),
               [](Settings& s, std::int64_t n) { s.drain.page_size = static_cast<std::uint32_t>(n); })},
      {"delete-emptydir-data", 0, Kind::boolean, "false",
       "Continue even if there are pods using emptyDir (local data that is deleted with the pods).",
       boolean([](Settings& s, bool on) { s.drain.policy.empty_dir = on ? Treatment::evict : Treatment::refuse; })},
      {"disable-eviction", 0, Kind::boolean, "false",
       "Delete pods instead of evicting them. This bypasses PodDisruptionBudgets, use with caution.",
       boolean([](Settings& s, bool on) { s.drain.delete_instead_of_evict = on; })},
      dry_run_flag(),
      {"force", 0, Kind::boolean, "false",
       "Continue even if there are pods that do not declare a controller, or whose DaemonSet does not exist any more. "
       "Nothing creates them again.",
       boolean([](Settings& s, bool on) {
         s.drain.policy.unmanaged = on ? Treatment::evict : Treatment::refuse;
         s.drain.policy.orphaned_daemon_set = on ? Treatment::evict : Treatment::refuse;
       })},
      {"grace-period", 0, Kind::value, "-1",
       "Period of time in seconds given to each pod to terminate gracefully. If negative, the pod's own value is used.",
       integer(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int32_t>::max(),
               [](Settings& s, std::int64_t n) {
                 s.drain.grace_seconds = n < 0 ? std::nullopt : std::optional<std::int64_t>(n);
               })},
      {"ignore-daemonsets", 0, Kind::boolean, "false", "Ignore DaemonSet-managed pods. They stay on the node.",
       boolean([](Settings& s, bool on) { s.drain.policy.daemon_set = on ? Treatment::skip : Treatment::refuse; })},
      {"pod-selector", 0, Kind::value, "", "Label selector to filter pods on the node. The other pods stay.",
       apply_pod_selector},
      selector_flag(),
      {"skip-wait-for-delete-timeout", 0, Kind::value, "0",
       "Do not wait for a pod whose deletionTimestamp is older than this many seconds. 0 or less: wait for every pod.",
       integer(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int32_t>::max(),
               [](Settings& s, std::int64_t n) {
                 auto& after = s.drain.policy.skip_terminating_after;
                 after = n > 0 ? std::optional<Duration>(std::chrono::seconds(n)) : std::nullopt;
               })},
      {"timeout", 0, Kind::value, "0s",
       "How long to wait before giving up on a node (90s, 5m, 1h30m). 0 means infinite; a negative value gives up at "
       "once, as in kubectl.",
       any_duration([](Settings& s, Duration d) {
         // A negative timeout becomes the shortest one, which has passed when the drain begins.
         if (d < Duration::zero()) d = Duration(1);
         s.drain.timeout = d == Duration::zero() ? std::nullopt : std::optional<Duration>(d);
       })},
  };
}

Flag timeline_flag() {
  return {"timeline",
          0,
          Flag::Kind::value,
          "",
          "Draw a timeline of each pod into this SVG file.",
          text([](Settings& settings) -> std::string& { return settings.timeline; })};
}

// The flags of the guards, which protect pods beside budgets.
std::vector<Flag> guard_flags() {
  using drain::SingleReplica;
  using Kind = Flag::Kind;
  return {
      {"canary", 0, Kind::value, "0s",
       "Evict one pod of each controller first, and the others when its replacement is scheduled, or after this time. "
       "No further pod is evicted while a replacement cannot be scheduled. 0: off.",
       duration([](Settings& s, Duration d) { s.drain.guards.canary = d; })},
      {"max-unavailable-per-controller", 0, Kind::value, "",
       "How many pods of a controller may be evicted without a Ready replacement: a number (2), or a percentage of its "
       "replicas (25%, rounded down, but at least one). PodDisruptionBudgets still apply, and nothing is written to "
       "the cluster for it.",
       apply_max_unavailable},
      {"single-replica", 0, Kind::value, "allow",
       "What to do with a pod that is the only one of its controller: allow (evict it), warn (evict it and warn) or "
       "block (refuse the drain).",
       one_of<SingleReplica>(
           {{"allow", SingleReplica::allow}, {"warn", SingleReplica::warn}, {"block", SingleReplica::block}},
           [](Settings& s, SingleReplica policy) { s.drain.guards.single_replica = policy; })},
  };
}

// Flags that kubectl drain does not have.
std::vector<Flag> own_drain_flags() {
  using drain::Treatment;
  using Kind = Flag::Kind;
  using drain::FitPolicy;
  return {
      {"drain-order", 0, Kind::value, "",
       "SELECTOR=NUMBER sets the order of evictions: pods with lower numbers are evicted first (app=db=10). All other "
       "pods have 0. May be repeated, and the first that selects a pod counts. A pod's own annotation "
       "haulout.dev/drain-order takes precedence.",
       apply_drain_order},
      {"check-fit", 0, Kind::value, "off",
       "Check before the drain whether the pods fit on other nodes, as the scheduler would: off, warn (report the pods "
       "that do not fit, or for which it is unknown), block (change nothing if a pod does not fit) or require (change "
       "nothing unless all are known to fit). Requires permission to list the nodes and pods of the whole cluster.",
       one_of<FitPolicy>({{"off", FitPolicy::off},
                          {"warn", FitPolicy::warn},
                          {"block", FitPolicy::block},
                          {"require", FitPolicy::require}},
                         [](Settings& s, FitPolicy policy) { s.drain.fit = policy; })},
      {"max-concurrent", 0, Kind::value, "unlimited",
       "How many pods may be evicted or terminating at the same time: a number, or unlimited as in kubectl. An agent "
       "that updates a fleet uses 5, so that replacements find capacity, and registries and storage are not "
       "overloaded. A person who watches one node rarely needs that. PodDisruptionBudgets apply either way.",
       apply_max_concurrent},
      {"output", 'o', Kind::value, "text",
       "Output format: text, json or jsonl. json: only the report on stdout. jsonl: one event per line on stdout.",
       one_of<OutputFormat>(
           {{"text", OutputFormat::text}, {"json", OutputFormat::json}, {"jsonl", OutputFormat::jsonl}},
           [](Settings& s, OutputFormat format) { s.output = format; })},
      {"pinned", 0, Kind::value, "wait",
       "What to do with pods that their controller creates on the cordoned node again and again, because they tolerate "
       "every taint or are bound to the node: wait (until a person changes that) or leave (they stay, and the report "
       "names them).",
       one_of<Treatment>({{"wait", Treatment::park}, {"leave", Treatment::skip}},
                         [](Settings& s, Treatment pinned) { s.drain.policy.pinned = pinned; })},
      {"reattach-limit", 0, Kind::value, "0s",
       "With --wait-volumes or --serialize-volumes: when the volumes of a pod are detached, wait up to this long until "
       "another node has attached them, before the next pod of that driver is evicted and before the drain ends. When "
       "the time is over, the drain warns and continues. 0: do not wait.",
       duration([](Settings& s, Duration d) { s.drain.reattach_limit = d; })},
      {"respect-do-not-disrupt", 0, Kind::boolean, "false",
       "Do not evict pods that are annotated do-not-disrupt or safe-to-evict=false, but wait until the annotation is "
       "removed.",
       boolean([](Settings& s, bool on) { s.drain.policy.do_not_disrupt = on ? Treatment::park : Treatment::evict; })},
      {"serialize-volumes", 0, Kind::boolean, "false",
       "Evict pods whose volumes belong to the same CSI driver one at a time. The next pod follows when the one before "
       "is deleted and its volumes are detached, or have been waited for longer than --volume-limit. Requires the "
       "permissions of --wait-volumes.",
       boolean([](Settings& s, bool on) {
         s.drain.volume_turns = on ? drain::VolumeWait::required : drain::VolumeWait::off;
       })},
      {"settle", 0, Kind::value, "5s",
       "How long the node must have been cordoned and empty before it counts as drained. Pods that were being "
       "scheduled arrive late. The default is never more than half of --timeout.",
       duration([](Settings& s, Duration d) {
         s.drain.settle = d;
         s.settle_given = true;
       })},
      {"stuck-volume", 0, Kind::value, "wait",
       "With --wait-volumes: what to do about a volume that is past its --volume-limit: wait (the drain reports it and "
       "continues to wait) or fail (the drain fails).",
       one_of<bool>({{"wait", false}, {"fail", true}},
                    [](Settings& s, bool ends) { s.drain.end_at_volume_limit = ends; })},
      timeline_flag(),
      {"uncordon-on-failure", 0, Kind::boolean, "false",
       "If the drain fails, restore the cordon as it was before. Without this flag the node stays cordoned, as with "
       "kubectl.",
       boolean([](Settings& s, bool on) { s.drain.restore_cordon_on_failure = on; })},
      {"volume-limit", 0, Kind::value, "2m",
       "With --wait-volumes: report a volume as stuck if it is still attached this long after its last pod was "
       "deleted. With --serialize-volumes the next pod is then evicted. 0: no volume counts as stuck.",
       duration([](Settings& s, Duration d) { s.drain.volume_limit = d; })},
      {"wait-volumes", 0, Kind::boolean, "false",
       "Also wait until the volumes of the evicted pods are detached from the node, which means that their "
       "VolumeAttachments are deleted. Requires permission to list and watch volumeattachments and to get "
       "persistentvolumes.",
       boolean(
           [](Settings& s, bool on) { s.drain.volumes = on ? drain::VolumeWait::required : drain::VolumeWait::off; })},
  };
}

std::vector<Flag> drain_flags() {
  std::vector<Flag> flags = kubectl_drain_flags();
  for (Flag& flag : own_drain_flags()) flags.push_back(std::move(flag));
  for (Flag& flag : guard_flags()) flags.push_back(std::move(flag));
  return flags;
}

}  // namespace

std::vector<Flag> command_flags(Command command) {
  switch (command) {
    case Command::drain: return drain_flags();
    case Command::rehearse: return rehearse_flags(drain_flags());
    case Command::cordon:
    case Command::uncordon: return {dry_run_flag(), selector_flag()};
    case Command::agent: return agent_flags();
    case Command::status:
    case Command::explain:
    case Command::pause:
    case Command::resume:
    case Command::request_reboot: return people_flags(command);
    case Command::completion:
    case Command::complete_nodes:
    case Command::version: return {};
  }
  return {};
}

namespace {

// Flags that are accepted because scripts pass them to kubectl. They have no effect in Haulout.
std::vector<Flag> flags_without_effect() {
  using Kind = Flag::Kind;
  const auto accept = [](std::string name, Kind kind) {
    Flag flag{std::move(name),
              0,
              kind,
              "",
              "Accepted for compatibility with kubectl, without effect.",
              [](Settings&, const std::string&) { return std::string(); }};
    flag.without_effect = true;
    return flag;
  };
  return {accept("cache-dir", Kind::value),
          accept("disable-compression", Kind::boolean),
          accept("kuberc", Kind::value),
          accept("log-flush-frequency", Kind::value),
          accept("match-server-version", Kind::boolean),
          accept("profile", Kind::value),
          accept("profile-output", Kind::value),
          accept("vmodule", Kind::value)};
}

std::vector<Flag> effective_connection_flags() {
  using Flags = k8s::ConnectionFlags;
  using Kind = Flag::Kind;
  return {
      {"as", 0, Kind::value, "", "Username to impersonate for the operation.", connection(&Flags::as)},
      {"as-group", 0, Kind::value, "", "Group to impersonate for the operation. May be repeated.",
       [](Settings& s, const std::string& group) -> std::string {
         s.connection.as_groups.push_back(group);
         return {};
       }},
      {"as-uid", 0, Kind::value, "", "UID to impersonate for the operation.", connection(&Flags::as_uid)},
      {"as-user-extra", 0, Kind::value, "",
       "User extra to impersonate for the operation, as KEY=VALUE. May be repeated.",
       [](Settings& s, const std::string& extra) -> std::string {
         const std::size_t equals = extra.find('=');
         if (equals == std::string::npos || equals == 0) return "write KEY=VALUE";
         s.connection.as_user_extra.emplace_back(extra.substr(0, equals), extra.substr(equals + 1));
         return {};
       }},
      {"certificate-authority", 0, Kind::value, "",
       "Path to a cert file for the certificate authority of the API server.",
       connection(&Flags::certificate_authority)},
      {"client-certificate", 0, Kind::value, "", "Path to a client certificate file for TLS.",
       connection(&Flags::client_certificate)},
      {"client-key", 0, Kind::value, "", "Path to a client key file for TLS.", connection(&Flags::client_key)},
      {"cluster", 0, Kind::value, "", "The name of the kubeconfig cluster to use.", connection(&Flags::cluster)},
      {"context", 0, Kind::value, "", "The name of the kubeconfig context to use.", connection(&Flags::context)},
      {"insecure-skip-tls-verify", 0, Kind::boolean, "false",
       "If true, do not check the server's certificate. This makes the connection insecure.",
       boolean([](Settings& s, bool on) { s.connection.insecure_skip_tls_verify = on; })},
      {"kubeconfig", 0, Kind::value, "",
       "Path to the kubeconfig file. Without it: $KUBECONFIG, ~/.kube/config or the pod's ServiceAccount, in this "
       "order.",
       connection(&Flags::kubeconfig)},
      {"log-format", 0, Kind::value, "text", "Log format: text or json.",
       one_of<agent::LogFormat>({{"text", agent::LogFormat::text}, {"json", agent::LogFormat::json}},
                                [](Settings& s, agent::LogFormat format) { s.log_format = format; })},
      {"namespace", 'n', Kind::value, "",
       "For status, explain, pause and resume: the namespace of Haulout's ConfigMap and Leases, default haulout. The "
       "other commands accept it without effect, because nodes have no namespace.",
       connection(&Flags::ns)},
      {"password", 0, Kind::value, "", "Password for basic authentication to the API server.",
       connection(&Flags::password)},
      {"request-timeout", 0, Kind::value, "0",
       "How long to wait before giving up on a single request. 0: as long as the operation needs. A bare number is "
       "seconds.",
       duration_or_seconds([](Settings& s, Duration d) {
         s.request_timeout = d > Duration::zero() ? std::optional<Duration>(d) : std::nullopt;
       })},
      {"server", 's', Kind::value, "", "The address and port of the Kubernetes API server.",
       connection(&Flags::server)},
      {"tls-server-name", 0, Kind::value, "", "Server name to use for the validation of the server's certificate.",
       connection(&Flags::tls_server_name)},
      {"token", 0, Kind::value, "", "Bearer token for authentication to the API server.", connection(&Flags::token)},
      {"user", 0, Kind::value, "", "The name of the kubeconfig user to use.", connection(&Flags::user)},
      {"username", 0, Kind::value, "", "Username for basic authentication to the API server.",
       connection(&Flags::username)},
      {"v", 'v', Kind::value, "0",
       "How much to log on stderr: 0 warnings, 1 also requests, 2 everything. From 6 on, requests as kubectl logs "
       "them.",
       integer(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max(),
               [](Settings& s, std::int64_t n) { s.verbosity = static_cast<unsigned>(std::max<std::int64_t>(n, 0)); })},
      {"warnings-as-errors", 0, Kind::boolean, "false",
       "Treat warnings from the server as errors: exit with 1 although everything was done.",
       boolean([](Settings& s, bool on) { s.warnings_as_errors = on; })},
  };
}

}  // namespace

std::vector<Flag> connection_flags() {
  std::vector<Flag> flags = effective_connection_flags();
  for (Flag& flag : flags_without_effect()) flags.push_back(std::move(flag));
  return flags;
}

std::vector<Flag> all_flags(Command command) {
  std::vector<Flag> flags = command_flags(command);
  if (command == Command::agent) return flags;  // the agent's connection is part of its configuration
  for (Flag& flag : connection_flags()) flags.push_back(std::move(flag));
  return flags;
}

}  // namespace haulout::cli
