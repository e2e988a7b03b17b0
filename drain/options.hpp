// Options of a drain. Plain data. The defaults of all options are defined here only: agent_defaults() for agents,
// kubectl_defaults() for the commands that people type, retire_defaults() for
// `haulout retire`. option_table.hpp defines which options users can set, and how.
// Durations are limits; the drain computes the deadlines from them when it starts.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "drain/guards.hpp"
#include "drain/order.hpp"
#include "drain/pod_rules.hpp"
#include "k8s/label_selector.hpp"
#include "retry/clock.hpp"

namespace haulout::drain {

enum class Treatment { evict, skip, refuse, park };

// The action for each kind of pod. `skip` leaves the pod on the node and does not wait for it. `refuse` stops the drain
// before it changes anything. `park` waits until the condition ends.
struct Policy {
  Treatment daemon_set = Treatment::skip;            // skip | refuse
  Treatment orphaned_daemon_set = Treatment::evict;  // no DaemonSet has the owner's UID: evict | refuse
  Treatment finished = Treatment::skip;              // phase Succeeded or Failed: skip | evict
  Treatment empty_dir = Treatment::evict;            // evict | refuse
  Treatment unmanaged = Treatment::evict;            // no controller: evict | refuse | skip
  Treatment do_not_disrupt = Treatment::park;        // annotation do-not-disrupt or safe-to-evict=false: park | evict
  Treatment pinned = Treatment::park;                // its controller recreates it on this node: park | skip
  Treatment gangs = Treatment::evict;                // members of gangs (gangs.hpp): evict | park | refuse
  std::optional<Duration> skip_terminating_after;    // kubectl's --skip-wait-for-delete-timeout
  k8s::LabelSelector pod_selector;                   // pods that do not match are skipped
  std::vector<k8s::LabelSelector> leave;             // pods that match any of them are skipped
  // Pods of DaemonSets that match any of them are evicted once each, after all other pods. What their DaemonSets create
  // in their place stays.
  std::vector<k8s::LabelSelector> evict_daemon_sets;
  std::vector<PodRule> rules;  // the first one that matches a pod applies (pod_rules.hpp)
  ClusterApiLabels cluster_api_labels = ClusterApiLabels::wait;  // the label of Cluster API applies before the rules
  // False because the machine goes down in any case: neither rules nor labels nor `gangs` make the drain wait, and
  // `gangs` does not refuse it.
  bool waits_for_work = true;
  bool operator==(const Policy&) const = default;
};

// Whether the pods that must leave have to fit on other nodes before the drain changes anything (placement/fit.hpp).
// `warn` only reports the pods that do not fit, and those whose fit is unknown. `block` refuses the drain if a pod is
// known not to fit. `require` refuses it unless all pods are known to fit. All values but `off` list all nodes and pods
// of the cluster.
enum class FitPolicy { off, warn, block, require };

// Whether the drain also waits until the volumes of the deleted pods are detached. If VolumeAttachments or
// PersistentVolumes may not be read, `if_permitted` does not wait, and a diagnosis says so; `required` ends the drain.
enum class VolumeWait { off, if_permitted, required };

// For which pods the drain creates EvictionRequests (eviction_request_book.hpp). `responders`: those with
// spec.evictionResponders.
enum class EvictionRequests { off, responders };

// `client` sends no eviction; `server` sends each with dryRun=All. Both change nothing.
enum class DryRunMode { none, client, server };

struct Options {
  Policy policy;
  DryRunMode dry_run = DryRunMode::none;
  std::optional<std::int64_t> grace_seconds;  // unset means each pod's own; requests then carry none
  std::optional<Duration> timeout;            // unset means no limit
  // The first rule that matches a pod gives its explicit order. An annotation of the pod has precedence (order.hpp).
  std::vector<OrderRule> order;
  std::size_t max_concurrent = 5;  // number of places; 0 means unlimited
  // Controllers that have recreated their pods on this node before, as keys of controller_key() (pipeline.hpp).
  // Their pods count as pinned at once.
  std::set<std::string> pinned_controllers;
  Duration settle = std::chrono::seconds(5);  // how long the node must have been cordoned before it counts as drained
  EvictionRequests eviction_requests = EvictionRequests::off;
  // How long a pod waits for the first sign of a responder. Then it is evicted as without an EvictionRequest. Longer
  // than the 3 minutes that the proposal of the API (KEP-4563) recommends between two signs of life of a responder.
  Duration eviction_request_limit = std::chrono::minutes(5);
  bool delete_instead_of_evict = false;   // kubectl's --disable-eviction: bypasses budgets
  bool restore_cordon_on_failure = true;  // if the drain ends as blocked or failed, remove its own cordon
  Guards guards;
  VolumeWait volumes = VolumeWait::if_permitted;
  // Whether pods with volumes of the same CSI driver are evicted one at a time (volume_turns.hpp). `if_permitted` and
  // `required` mean the same as for `volumes`. Only `volumes` decides whether the drain waits until the last volume is
  // detached.
  VolumeWait volume_turns = VolumeWait::off;
  // A volume that is still attached this long after its last pod was deleted counts as stuck. 0 means never.
  Duration volume_limit = std::chrono::minutes(2);
  // If true, a stuck volume ends the drain as `blocked`. If false, the drain reports the volume and waits.
  bool end_at_volume_limit = false;
  // How long at most the drain waits, after a volume was detached, for another node to attach it. Until then it does
  // not evict the next pod of the same CSI driver (if `volume_turns` is on) and does not end (if `volumes` is on). 0
  // turns this off. The wait never changes the outcome (reattach.hpp).
  Duration reattach_limit{};
  // How the drain treats errors before the first successful answer of the server (k8s/patience.hpp). If true, it fails
  // at once on DNS and TLS errors, on 401 and on wrong answers, and on the second 403. It fails after
  // `unreachable_limit` if the connection is refused or the server is silent. If false, it retries until the deadline.
  bool fail_fast = false;
  Duration unreachable_limit = std::chrono::seconds(10);
  FitPolicy fit = FitPolicy::off;
  // All nodes of the same command, including this one. The command cordons all of them first and then drains one after
  // the other. Empty for agents.
  std::set<std::string> drained_together;
  // Whether SelfSubjectAccessReviews check the rights before the drain changes anything. Their answers are wrong for
  // impersonated users and for kubelets.
  bool review_access = true;
  std::string cordoned_by = "haulout";  // written to the mark: who cordoned
  std::string run_id;                   // written to the mark: which run
  std::string own_pod_uid;              // UID of the pod that Haulout runs in, evicted last; empty outside a cluster
  std::uint32_t page_size = 500;
  bool operator==(const Options&) const = default;
};

inline Options agent_defaults() {
  Options options;
  // The agent checks its rights when it starts. An access review gives wrong answers for most identities of agents.
  options.review_access = false;
  return options;
}

// Returns the defaults of `kubectl drain`, which a person who types a command expects.
inline Options kubectl_defaults() {
  Options options;
  options.policy.daemon_set = Treatment::refuse;
  options.policy.orphaned_daemon_set = Treatment::refuse;
  options.policy.finished = Treatment::evict;
  options.policy.empty_dir = Treatment::refuse;
  options.policy.unmanaged = Treatment::refuse;
  options.policy.do_not_disrupt = Treatment::evict;
  options.policy.cluster_api_labels = ClusterApiLabels::off;
  options.max_concurrent = 0;
  options.restore_cordon_on_failure = false;
  options.fail_fast = true;
  options.volumes = VolumeWait::off;
  return options;
}

// Returns the defaults of `haulout retire`: kubectl's, except that the node does not come back. So its DaemonSet pods
// end with it, and its volumes must be detached first. The drain takes at most a quarter of the pods of a controller at
// a time. It warns of pods that fit on no other node, and of services that lose their only pod.
inline Options retire_defaults() {
  Options options = kubectl_defaults();
  options.policy.daemon_set = Treatment::skip;
  options.volumes = VolumeWait::required;
  options.fit = FitPolicy::warn;
  options.guards.single_replica = SingleReplica::warn;
  options.guards.max_unavailable = Share{25, true};
  return options;
}

}  // namespace haulout::drain
