// Decides which pods must leave. Pure. Decision::findings has the result of each filter that applies to the pod. The
// first of them, in the order below, whose action is not "evict" decides.
//
// Order: mirror, pod selector, leave, rule that skips, long terminating, finished, DaemonSet, rule that waits without
// limit, gang that is waited for, emptyDir, unmanaged, gang that is evicted or refuses, rule that waits for a limited
// time, do-not-disrupt. If no filter before `finished` decides about a finished pod, Policy::finished alone decides, as
// in kubectl. A mirror pod is never evicted. A terminating pod is not skipped merely because it has finished by now,
// and no rule waits for its work. A rule with a limit comes after emptyDir and unmanaged, so that a drain which may not
// evict the pod in the end does not begin. Any rule takes precedence over filters that would leave the pod on the node
// because it has no controller, and over the option for gangs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drain/options.hpp"
#include "drain/reasons.hpp"
#include "drain/report.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

// State of the DaemonSets that own pods of the node, by the UID in the pod's ownerReference.
enum class DaemonSetState { exists, gone, unknown };
using DaemonSetStates = std::map<std::string, DaemonSetState>;

// The result of one filter.
struct Finding {
  Verdict verdict = Verdict::evict;
  std::string reason;  // "DaemonSetManaged", "EmptyDir", …
  std::string message;
  bool operator==(const Finding&) const = default;
};

// The reason of a pod that is skipped because it has been terminating for too long. The drain may have to wait for such
// a pod again: after etcd was restored from a backup, the pod may have a later deletionTimestamp.
inline constexpr std::string_view terminating_too_long = reason::terminating_too_long;
// The reason of a pod that is skipped while its labels match --leave-pods.
inline constexpr std::string_view left_by_labels = reason::left_by_labels;
// Returns true for the reason of a pod that is skipped because of its labels, its namespace or its owner. These stay
// readable when the pod is terminating, so the decision about it can be made again.
bool can_be_judged_again(std::string_view reason);

struct Decision {
  Verdict verdict = Verdict::evict;
  std::string reason;  // empty if no filter decided; the pod is evicted then
  std::string message;
  std::vector<Finding> findings;  // the result of every filter that applies to the pod
  Stage stage = Stage::first;     // when the pod is evicted; never `own`: policy does not know the drain's own pod
  bool is_awaited = false;        // the drain waits until the pod has finished, without a limit, so it never evicts it
};

// What the decision about a pod depends on besides the pod and the policy.
struct DrainFacts {
  // Time since the cordon, for rules that wait for a limited time; nullopt: the drain has not begun.
  std::optional<Duration> draining_for{};
  // If the pod's DaemonSet exists, the pod stays for this reason, whatever Policy::evict_daemon_sets and
  // Policy::daemon_set say; empty if there is none. See why_daemon_stays().
  std::string_view stays_because{};
  // The gang of the pod does not run as a whole any more (broken_gangs.hpp), so nothing waits for it.
  bool gang_is_broken = false;
};
Decision decide(const k8s::Pod& pod, const Policy& policy, const DaemonSetStates& daemon_sets, WallTime wall,
                const DrainFacts& facts = {});

// Returns true if Policy::evict_daemon_sets selects the pod, and it belongs to a DaemonSet.
bool is_selected_daemon_pod(const k8s::Pod& pod, const Policy& policy);
// The reason for which the pods stay that a DaemonSet creates in place of those that the drain has evicted.
inline constexpr std::string_view created_in_place =
    "its DaemonSet has created it in place of the one that was evicted, so it stays";
// Returns why a pod of a DaemonSet stays although Policy::evict_daemon_sets selects it; empty if it does not stay, or
// belongs to no DaemonSet. `own_pod_uid`: the pod in which Haulout itself runs; empty if it runs in none.
// `another_was_evicted`: another pod of its DaemonSet was evicted from this node in this attempt.
std::string_view why_daemon_stays(const k8s::Pod& pod, const Policy& policy, std::string_view own_pod_uid,
                                  bool another_was_evicted);

bool is_mirror(const k8s::Replica& pod);
// Returns true if a DaemonSet of any API group owns the pod.
bool is_daemon_pod(const k8s::Replica& pod);
// Returns true if the containers are known to have ended. The end of the grace period does not prove that.
bool containers_have_ended(const k8s::Pod& pod);
// Returns true for pods of apps/v1 DaemonSets. DaemonSets of other API groups cannot be looked up, so they count as
// existing.
bool can_look_up_daemon_set(const k8s::Pod& pod);
// Returns the annotation that protects the pod, as "key=value", or an empty string if none does. A duration in
// karpenter.sh/do-not-disrupt counts from the pod's startTime; the text then ends with the time when it is over.
std::string do_not_disrupt(const k8s::Pod& pod, WallTime wall);

}  // namespace haulout::drain
