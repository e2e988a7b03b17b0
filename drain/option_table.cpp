#include "drain/option_table.hpp"

#include <limits>

namespace haulout::drain {
namespace {

using O = Options;

constexpr std::int64_t many = 1'000'000;
constexpr std::int64_t any_negative = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t largest_int32 = std::numeric_limits<std::int32_t>::max();

enum class Users { command, agent, both };

struct Row {
  Users users = Users::both;
  OptionOf<Options> option;
  // The sentence that is appended to the meaning of the option for that user only; empty if there is none.
  std::string for_command{};
  std::string for_agent{};
};

constexpr const char* guards_need_rights =
    "Requires additional RBAC permissions (kustomize component guards): see [guards](guards.md).";

// A boolean option for a Treatment: true evicts the pods, false refuses the drain because of them.
Values<O> evicts(std::function<void(O&, Treatment)> set, std::function<Treatment(const O&)> get) {
  return boolean<O>({[get](const O& o) { return get(o) == Treatment::evict; },
                     [set](O& o, bool evict) { set(o, evict ? Treatment::evict : Treatment::refuse); }});
}

// A boolean option for a VolumeWait. For a command, true means `required`: the wait or an error. For an agent it means
// `if_permitted`: an agent that may not read volumes drains without the wait.
Values<O> waits(VolumeWait O::* field, OptionUser user) {
  const VolumeWait on = user == OptionUser::agent ? VolumeWait::if_permitted : VolumeWait::required;
  return boolean<O>({[field](const O& o) { return o.*field != VolumeWait::off; },
                     [field, on](O& o, bool wait) { o.*field = wait ? on : VolumeWait::off; }});
}

Values<O> pod_selector() {
  const auto set = [](O& o, const std::string& text) -> std::string {
    auto selector = k8s::parse_label_selector(text);
    if (!selector) return selector.error().message();
    o.policy.pod_selector = *std::move(selector);
    return {};
  };
  return {ValueType::text, "label selector", "", {}, set, [](const O& o) { return to_string(o.policy.pod_selector); }};
}

Values<O> unavailable_share() {
  const auto set = [](O& o, const std::string& text) -> std::string {
    const auto share = parse_share(text);
    if (!share) return share.error().message();
    o.guards.max_unavailable = *share;
    return {};
  };
  const auto show = [](const O& o) {
    return o.guards.max_unavailable ? to_string(*o.guards.max_unavailable) : std::string();
  };
  return {ValueType::number_or_percentage, "number, percentage", "pods", {}, set, show};
}

// kubectl's --timeout: a negative value ends the drain at once, and 0 means no limit.
Values<O> timeout() {
  const auto set = [](O& o, const std::string& text) -> std::string {
    const auto parsed = parse_duration(text);
    if (!parsed) return parsed.error().message();
    const Duration limit = *parsed < Duration::zero() ? shortest_timeout : *parsed;
    o.timeout = limit == Duration::zero() ? std::nullopt : std::optional<Duration>(limit);
    return {};
  };
  return {ValueType::duration, "duration", "", {}, set, [](const O& o) {
            return written_duration(o.timeout.value_or(Duration::zero()));
          }};
}

Field<O, Duration> deadline() {
  return {[](const O& o) { return o.timeout.value_or(Duration::zero()); },
          [](O& o, Duration limit) {
            o.timeout = limit == Duration::zero() ? std::nullopt : std::optional<Duration>(limit);
          }};
}

Field<O, std::int64_t> grace_period() {
  return {[](const O& o) { return o.grace_seconds.value_or(-1); },
          [](O& o, std::int64_t seconds) {
            o.grace_seconds = seconds < 0 ? std::nullopt : std::optional<std::int64_t>(seconds);
          }};
}

Field<O, std::int64_t> skip_terminating() {
  using std::chrono::seconds;
  return {[](const O& o) {
            const auto& after = o.policy.skip_terminating_after;
            return after ? std::chrono::duration_cast<seconds>(*after).count() : 0;
          },
          [](O& o, std::int64_t count) {
            o.policy.skip_terminating_after = count > 0 ? std::optional<Duration>(seconds(count)) : std::nullopt;
          }};
}

Field<O, bool> respects(bool negated) {
  return {[negated](const O& o) { return (o.policy.do_not_disrupt == Treatment::park) != negated; },
          [negated](O& o, bool on) { o.policy.do_not_disrupt = on != negated ? Treatment::park : Treatment::evict; }};
}

// The options with the names of `kubectl drain`. Only the command has them.
std::vector<Row> kubectl_rows() {
  const auto of_command = [](OptionOf<O> option) { return Row{Users::command, std::move(option)}; };
  return {
      of_command({"chunk-size", integer<O>(&O::page_size, "objects", 0, std::numeric_limits<std::uint32_t>::max()),
                  "Return large lists in chunks of this many objects rather than all at once. 0 disables chunks."}),
      of_command(
          {"delete-emptydir-data",
           evicts([](O& o, Treatment t) { o.policy.empty_dir = t; }, [](const O& o) { return o.policy.empty_dir; }),
           "Continue even if there are pods using emptyDir (local data that is deleted with the pods)."}),
      of_command({"disable-eviction", boolean<O>(&O::delete_instead_of_evict),
                  "Delete pods instead of evicting them. This bypasses PodDisruptionBudgets, use with caution."}),
      of_command({"dry-run",
                  choice<O, DryRunMode>(
                      &O::dry_run,
                      {{"none", DryRunMode::none}, {"client", DryRunMode::client}, {"server", DryRunMode::server}}),
                  "Print what would be done, and do not do it. client: send no change. server: send every change with "
                  "dryRun=All, so that the server checks it without persisting it."}),
      of_command({"force",
                  evicts([](O& o, Treatment t) { o.policy.unmanaged = o.policy.orphaned_daemon_set = t; },
                         [](const O& o) { return o.policy.unmanaged; }),
                  "Continue even if there are pods that do not declare a controller, or whose DaemonSet does not exist "
                  "any more. Nothing creates them again."}),
      of_command({"grace-period", integer<O>(grace_period(), "seconds", any_negative, largest_int32),
                  "Period of time in seconds given to each pod to terminate gracefully. If negative, the pod's own "
                  "value is used."}),
      of_command({"ignore-daemonsets",
                  boolean<O>({[](const O& o) { return o.policy.daemon_set == Treatment::skip; },
                              [](O& o, bool on) { o.policy.daemon_set = on ? Treatment::skip : Treatment::refuse; }}),
                  "Ignore DaemonSet-managed pods. They stay on the node, except those of --evict-daemonset-pods."}),
      of_command({"pod-selector", pod_selector(), "Label selector to filter pods on the node. The other pods stay."}),
      of_command({"skip-wait-for-delete-timeout",
                  integer<O>(skip_terminating(), "seconds", any_negative, largest_int32),
                  "Do not wait for a pod whose deletionTimestamp is older than this many seconds. 0 or less: wait for "
                  "every pod."}),
      of_command({"timeout", timeout(),
                  "How long to wait before giving up on a node (90s, 5m, 1h30m). 0 means infinite; a negative value "
                  "gives up at once, as in kubectl."}),
  };
}

std::vector<Row> rows_of_limits() {
  return {
      {Users::both,
       {"max-concurrent", number_or_word<O>(&O::max_concurrent, "pods", "unlimited", many),
        "How many pods may be evicted or terminating at the same time. A limit spares registries and storage, and "
        "gives replacements time to find capacity. PodDisruptionBudgets apply either way."}},
      {Users::agent,
       {"drain-deadline", duration<O>(deadline(), Zero::allowed),
        "How long a drain may take. Then the agent cancels it, uncordons the node and tries again later; 0 disables "
        "the limit."}},
      {Users::both,
       {"settle", duration<O>(&O::settle, Zero::allowed),
        "How long the node must have been cordoned before it counts as drained, because a pod that was being scheduled "
        "at the time of the cordon may still arrive."},
       "The default is never more than half of --timeout."},
      {Users::both,
       {"check-fit",
        choice<O, FitPolicy>(&O::fit, {{"off", FitPolicy::off},
                                       {"warn", FitPolicy::warn},
                                       {"block", FitPolicy::block},
                                       {"require", FitPolicy::require}}),
        "Check before a drain whether the pods fit on other nodes, as the scheduler would. warn: report the pods that "
        "do not fit, or for which it is unknown. block: do not drain while a pod does not fit. require: drain only if "
        "all are known to fit. Each check lists all nodes and pods of the cluster."},
       "It needs the permission to do so."},
  };
}

std::vector<Row> rows_of_pods() {
  using T = Treatment;
  return {
      {Users::agent,
       {"emptydir", choice<O, T>({&O::policy, &Policy::empty_dir}, {{"evict", T::evict}, {"refuse", T::refuse}}),
        "What to do with pods that use emptyDir. evict: their local data is deleted with them. refuse: do not drain "
        "the node."}},
      {Users::agent,
       {"unmanaged",
        choice<O, T>({&O::policy, &Policy::unmanaged}, {{"evict", T::evict}, {"refuse", T::refuse}, {"skip", T::skip}}),
        "What to do with pods without a controller. evict: nothing creates them again. refuse: do not drain the node. "
        "skip: they stay on the node."}},
      {Users::agent,
       {"finished", choice<O, T>({&O::policy, &Policy::finished}, {{"skip", T::skip}, {"evict", T::evict}}),
        "What to do with pods that have Succeeded or Failed. skip: they stay on the node. evict: they are deleted."}},
      {Users::agent,
       {"ignore-do-not-disrupt", boolean<O>(respects(true)),
        "Evict pods that are annotated do-not-disrupt or safe-to-evict=false, instead of waiting for them."}},
      {Users::command,
       {"respect-do-not-disrupt", boolean<O>(respects(false)),
        "Do not evict pods that are annotated do-not-disrupt or safe-to-evict=false, but wait until the annotation is "
        "removed."}},
      {Users::both,
       {"pinned", choice<O, T>({&O::policy, &Policy::pinned}, {{"wait", T::park}, {"leave", T::skip}}),
        "What to do with pods that their controller creates on the cordoned node again and again, because they "
        "tolerate the cordon or are bound to the node. wait: wait until a person changes that. leave: they stay."},
       "The report names them.",
       "They go down with the machine, and an Event names them."},
      {Users::agent,
       {"leave-pods",
        list<O, k8s::LabelSelector>([](O& o) -> auto& { return o.policy.leave; }, "label selector", parse_pod_selector),
        "Pods that match stay on the node and go down with the machine. The agent neither evicts them nor waits for "
        "them. Several may be given."}},
      {Users::both,
       {"evict-daemonset-pods",
        list<O, k8s::LabelSelector>([](O& o) -> auto& { return o.policy.evict_daemon_sets; }, "label selector",
                                    parse_pod_selector),
        "Evict pods of DaemonSets that match, after all other pods are deleted, so that they end within their grace "
        "period, like collectors that send what they have. Each is evicted once. Its DaemonSet creates it again at "
        "once, and that pod stays. Several may be given."},
       "All other pods of DaemonSets still need --ignore-daemonsets.",
       "The agent's own pod stays."},
      {Users::both,
       {"pod-rule", list<O, PodRule>([](O& o) -> auto& { return o.policy.rules; }, "WHO=ACTION", parse_pod_rule),
        "What to do with some pods, as WHO=ACTION. WHO: `namespace:NAME`, `kind:KIND` of their controller, "
        "`controller:KIND/NAMESPACE/NAME`, a label selector, or several of them separated by commas, the label "
        "selector at the end. ACTION: `evict`, also if the pod has an emptyDir volume or no controller; `skip`: it "
        "stays on the node; `wait-completed`: the drain waits until the pod has finished; `wait-completed=DURATION`: "
        "the same, but a pod that has not finished this long after the cordon is evicted; `last`: evict it when all "
        "others are deleted. Several may be given, and the first that matches a pod applies."}},
      {Users::both,
       {"cluster-api-labels",
        choice<O, ClusterApiLabels>(
            {&O::policy, &Policy::cluster_api_labels},
            {{"off", ClusterApiLabels::off}, {"wait", ClusterApiLabels::wait}, {"all", ClusterApiLabels::all}}),
        "Follow the label `cluster.x-k8s.io/drain` of a pod, before any `--pod-rule`. wait: with `wait-completed` the "
        "drain waits until the pod has finished. all: in addition, a pod with `skip` stays on the node."}},
      {Users::both,
       {"gangs",
        choice<O, T>({&O::policy, &Policy::gangs}, {{"evict", T::evict}, {"wait", T::park}, {"refuse", T::refuse}}),
        "What to do with members of a gang, a group of pods that runs only as a whole: pods of a PodGroup "
        "(spec.schedulingGroup), of a JobSet, or of one group of a LeaderWorkerSet. evict: evict them together, after "
        "all other pods are deleted; a diagnosis says which gangs that stops. wait: wait until they have finished, "
        "without a time limit, or until another member on this node is deleted. Pods of a LeaderWorkerSet usually "
        "never "
        "finish. refuse: do not drain the node. A `--pod-rule` that matches a member applies instead."}},
      {Users::both,
       {"drain-order", list<O, OrderRule>([](O& o) -> auto& { return o.order; }, "SELECTOR=NUMBER", parse_order_rule),
        "The order of evictions, as SELECTOR=NUMBER: pods with lower numbers are evicted first, like `app=db=10` for "
        "pods with the label app=db. Pods with a higher number do not wait until those with a lower one are "
        "deleted, nor for a pod whose eviction must wait. All other pods have 0. Several may be given, and the first "
        "that selects a pod counts. A pod's own annotation haulout.dev/drain-order takes precedence."}},
  };
}

std::vector<Row> rows_of_volumes(OptionUser user) {
  return {
      {Users::both,
       {"wait-volumes", waits(&O::volumes, user),
        "Also wait until the volumes of the evicted pods are detached from the node, which means that their "
        "VolumeAttachments are deleted."},
       "Requires permission to list and watch volumeattachments and to get persistentvolumes.",
       "If the agent has no permission to list them when it starts, as with a kubelet's credentials, it logs a warning "
       "and does not wait. If it loses the permission later, it starts no drain."},
      {Users::both,
       {"volume-limit", duration<O>(&O::volume_limit, Zero::allowed),
        "With `--wait-volumes` or `--serialize-volumes`: report a volume as stuck if it is still attached this long "
        "after its last pod was deleted. With `--serialize-volumes` the next pod is then evicted. 0: no volume counts "
        "as stuck."}},
      {Users::both,
       {"stuck-volume", choice<O, bool>(&O::end_at_volume_limit, {{"wait", false}, {"fail", true}}),
        "With `--wait-volumes`: what to do about a stuck volume (`--volume-limit`). wait: the drain reports it and "
        "continues to wait. fail: the drain fails."},
       "",
       "Then the agent uncordons the node and tries again later."},
      {Users::both,
       {"serialize-volumes", waits(&O::volume_turns, user),
        "Evict pods whose volumes belong to the same CSI driver one at a time, for storage that attaches and detaches "
        "slowly. The next pod follows when the one before is deleted and its volumes are detached, or are stuck "
        "(`--volume-limit`)."},
       "Requires the permissions of --wait-volumes.",
       "If the agent has no permission to list VolumeAttachments when it starts, it evicts these pods side by side, "
       "and reports that."},
      {Users::both,
       {"reattach-limit", duration<O>(&O::reattach_limit, Zero::allowed),
        "How long the drain waits, after the volumes of a pod are detached, until another node has attached them. With "
        "`--wait-volumes` it waits before it ends, with `--serialize-volumes` before it evicts the next pod with a "
        "volume of the same CSI driver. It does not wait for a volume that no other node requests within 30 s. When "
        "the limit has passed, the drain warns and continues. 0: do not wait."}},
  };
}

// The options of the guards, which protect pods in addition to PodDisruptionBudgets, and --uncordon-on-failure.
std::vector<Row> rows_of_guards() {
  using S = SingleReplica;
  return {
      {Users::both,
       {"max-unavailable-per-controller", unavailable_share(),
        "How many pods of a controller may be evicted without a Ready replacement: a number, or a percentage of its "
        "replicas (rounded down, but at least one). PodDisruptionBudgets still apply. The limit writes no object to "
        "the cluster."},
       "",
       guards_need_rights},
      {Users::both,
       {"single-replica",
        choice<O, S>({&O::guards, &Guards::single_replica},
                     {{"allow", S::allow}, {"warn", S::warn}, {"block", S::block}}),
        "What to do with a pod that is the only one of its controller. allow: evict it. warn: evict it and warn. "
        "block: do not drain the node."},
       "",
       guards_need_rights},
      {Users::both,
       {"canary", duration<O>({&O::guards, &Guards::canary}, Zero::allowed),
        "Evict one pod of each controller first, and its others when a replacement is scheduled, or after this time. "
        "While a replacement cannot be scheduled, no further pod of that controller is evicted, even after this time. "
        "0: off."},
       "",
       guards_need_rights},
      {Users::both,
       {"surge",
        choice<O, Surge>({&O::guards, &Guards::surge}, {{"off", Surge::off},
                                                        {"single-replica", Surge::single_replica},
                                                        {"closed-budget", Surge::closed_budget},
                                                        {"all", Surge::all}}),
        "Have a pod of a Deployment replaced before it is evicted, so that the drain leaves it no fewer Ready pods. "
        "The drain takes the label pod-template-hash off the pod, the ReplicaSet creates a replacement, and the pod is "
        "evicted when the replacement is Ready. single-replica: only Deployments with one replica. closed-budget: only "
        "pods whose PodDisruptionBudget allows no eviction although all its pods are healthy. all: all Ready pods. The "
        "annotation haulout.dev/surge of a pod or namespace takes precedence: false means never, true always unless "
        "this is off. Pods that cannot be replaced in advance are evicted as without it, and the drain says why."},
       "It requires permission to patch pods, to list and watch pods and poddisruptionbudgets, and to get namespaces, "
       "persistentvolumeclaims, deployments, replicasets and statefulsets.",
       "It requires additional RBAC permissions (kustomize component surge): see [guards](guards.md)."},
      {Users::both,
       {"surge-limit", duration<O>({&O::guards, &Guards::surge_limit}, Zero::refused),
        "With `--surge`: how long a pod waits for its replacement to become Ready. Then the drain gives the pod back "
        "to "
        "its ReplicaSet, which deletes a pod that is too many, and tries again after a pause of up to 5 minutes, later "
        "of up to an hour."}},
      {Users::both,
       {"eviction-requests",
        choice<O, EvictionRequests>(&O::eviction_requests,
                                    {{"off", EvictionRequests::off}, {"responders", EvictionRequests::responders}}),
        "Ask those who want to take part in the eviction of a pod, before the pod is evicted (KEP-4563, alpha since "
        "Kubernetes 1.37). responders: the drain creates an EvictionRequest for each pod that has "
        "spec.evictionResponders, and waits while a responder works, for example while it moves a virtual machine. A "
        "pod is evicted as without this option if no responder answers within `--eviction-request-limit`, if all of "
        "them fail, or if the API server does not serve EvictionRequests. If the drain ends without success, it "
        "withdraws its requests."},
       "It requires permission to list, watch, create, get and patch evictionrequests, and to list and watch evictions "
       "(API "
       "group lifecycle.k8s.io).",
       "It requires additional RBAC permissions (kustomize component eviction-requests): see "
       "[tasks](tasks.md#let-pods-answer-before-they-are-evicted)."},
      {Users::both,
       {"eviction-request-limit", duration<O>(&O::eviction_request_limit, Zero::refused),
        "With `--eviction-requests`: how long a pod waits for the first sign of each responder. Then it is evicted as "
        "without an EvictionRequest. A responder that has answered has 20 minutes from each of its signs, as the API "
        "defines."}},
      {Users::command,
       {"uncordon-on-failure", boolean<O>(&O::restore_cordon_on_failure),
        "If the drain has cordoned the node, and then fails or does not end before `--timeout`, uncordon it. Without "
        "this flag the node stays cordoned, as with kubectl."}},
  };
}

bool has(Users users, OptionUser user) {
  return users == Users::both || (users == Users::command) == (user == OptionUser::command);
}

}  // namespace

std::vector<OptionOf<Options>> option_table(OptionUser user) {
  std::vector<OptionOf<Options>> table;
  for (auto& rows : {kubectl_rows(), rows_of_limits(), rows_of_pods(), rows_of_volumes(user), rows_of_guards()})
    for (const Row& row : rows) {
      if (!has(row.users, user)) continue;
      OptionOf<Options>& option = table.emplace_back(row.option);
      const std::string& more = user == OptionUser::command ? row.for_command : row.for_agent;
      if (!more.empty()) option.meaning += " " + more;
    }
  return table;
}

Options defaults_of(OptionUser user) {
  return user == OptionUser::command ? kubectl_defaults() : agent_defaults();
}

Result<k8s::LabelSelector> parse_pod_selector(const std::string& text) {
  auto selector = k8s::parse_label_selector(text);
  if (selector && selector->empty()) return Error(Errc::invalid, "an empty selector would match every pod");
  return selector;
}

}  // namespace haulout::drain
