// Which pods must leave. Pure: every filter looks at every pod and its finding is kept; the decision is that of the
// first filter, in order, that does not say "evict".
//
// Order: mirror, pod selector, leave, long terminating, finished, DaemonSet, emptyDir, unmanaged, do-not-disrupt. A
// finished pod is decided by its own treatment alone, as kubectl does; a mirror pod is never touched whatever else it
// is. That a pod on its way out has finished by now lets nobody skip it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "drain/options.hpp"
#include "drain/report.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

// What is known of the DaemonSets that own pods here, by the UID in the pod's ownerReference.
enum class DaemonSetState { exists, gone, unknown };
using DaemonSetStates = std::map<std::string, DaemonSetState>;

struct Finding {
  Verdict verdict = Verdict::evict;
  std::string reason;  // "DaemonSetManaged", "EmptyDir", …
  std::string message;
  bool operator==(const Finding&) const = default;
};

// The reason why a pod is left that may have to be waited for again: a backup can bring back a later deletionTimestamp.
inline constexpr std::string_view terminating_too_long = "TerminatingTooLong";
// The reason why a pod is left for as long as it has these labels.
inline constexpr std::string_view left_by_labels = "LeftByLabels";

struct Decision {
  Verdict verdict = Verdict::evict;
  std::string reason;  // empty when nothing speaks against the eviction
  std::string message;
  std::vector<Finding> findings;  // of every filter that had something to say
};

Decision decide(const k8s::Pod& pod, const Policy& policy, const DaemonSetStates& daemon_sets, WallTime wall);

bool is_mirror(const k8s::Pod& pod);
// Owned by a DaemonSet of any API group.
bool is_daemon_pod(const k8s::Pod& pod);
// Known to have ended. That a grace period is over does not say so.
bool containers_have_ended(const k8s::Pod& pod);
// Only DaemonSets of apps/v1 can be looked up; others are taken as existing.
bool can_look_up_daemon_set(const k8s::Pod& pod);
// The protecting annotation, as "key=value", or empty. A karpenter.sh/do-not-disrupt duration counts from startTime.
std::string do_not_disrupt(const k8s::Pod& pod, WallTime wall);

}  // namespace haulout::drain
