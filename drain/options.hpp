// What a caller may decide about a drain. Plain data; the defaults here are the agent's (design: what each kind of pod
// gets), the command line sets kubectl's. Durations are options only: the engine turns them into deadlines when it
// starts.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "drain/guards.hpp"
#include "drain/order.hpp"
#include "k8s/label_selector.hpp"
#include "retry/clock.hpp"

namespace haulout::drain {

enum class Treatment { evict, skip, refuse, park };

// What each kind of pod gets. `skip` leaves the pod and does not wait for it, `refuse` stops the drain before it
// touches anything, `park` waits for the condition to end.
struct Policy {
  Treatment daemon_set = Treatment::skip;            // skip | refuse
  Treatment orphaned_daemon_set = Treatment::evict;  // its DaemonSet is gone, by UID: evict | refuse
  Treatment finished = Treatment::skip;              // Succeeded, Failed: skip | evict
  Treatment empty_dir = Treatment::evict;            // evict | refuse
  Treatment unmanaged = Treatment::evict;            // no controller: evict | refuse | skip
  Treatment do_not_disrupt = Treatment::park;        // do-not-disrupt, safe-to-evict=false: park | evict
  Treatment pinned = Treatment::park;                // its controller brings it back to this node: park | skip
  std::optional<Duration> skip_terminating_after;    // kubectl's --skip-wait-for-delete-timeout
  k8s::LabelSelector pod_selector;                   // pods that do not match are skipped
  std::vector<k8s::LabelSelector> leave;             // pods that match one of them are skipped
};

// Whether the pods that leave have to fit elsewhere before the drain touches anything (placement/fit.hpp). `warn` only
// says where they do not, or where nobody knows; `block` refuses when one is known not to fit; `require` unless all are
// known to fit. Anything but `off` lists all nodes and pods of the cluster.
enum class FitPolicy { off, warn, block, require };

// Whether the volumes of the pods that left must be detached, too. `if_permitted`: not where VolumeAttachments or
// PersistentVolumes may not be read; a diagnosis says so. `required`: that ends the drain.
enum class VolumeWait { off, if_permitted, required };

enum class DryRunMode { none, client, server };

struct Options {
  Policy policy;
  DryRunMode dry_run = DryRunMode::none;
  std::optional<std::int64_t> grace_seconds;  // unset: each pod's own, and nothing is sent
  std::optional<Duration> timeout;            // unset: for ever
  std::vector<OrderRule> order;               // the first that selects a pod counts; its own annotation comes before
  std::size_t max_concurrent = 5;             // places; 0: unlimited
  // That have brought their pods back to this node before, as controller_key() of pipeline.hpp names them: such pods
  // count as pinned at once.
  std::set<std::string> pinned_controllers;
  Duration settle = std::chrono::seconds(5);  // emptiness must have lasted this long since the cordon was acknowledged
  bool delete_instead_of_evict = false;       // kubectl's --disable-eviction: bypasses budgets
  bool restore_cordon_on_failure = true;      // blocked, refused, failed: put the cordon back as it was
  Guards guards;
  VolumeWait volumes = VolumeWait::if_permitted;
  // Pods whose volumes belong to one CSI driver leave one at a time (volume_turns.hpp). Likewise where they may not be
  // read; whether the last of them must be detached is said by `volumes` alone.
  VolumeWait volume_turns = VolumeWait::off;
  // A volume that is still attached this long after its last pod has gone counts as stuck; 0: never.
  Duration volume_limit = std::chrono::minutes(2);
  bool end_at_volume_limit = false;  // then the drain ends as `blocked`; otherwise it is said, and waited for
  // How long after the detaching of a volume another node may take to have it, before the next pod takes its turn and
  // before the drain ends; 0: that is not looked at. Advice (reattach.hpp). Only where volumes are looked at anyway.
  Duration reattach_limit{};
  // Until the server has done anything for this client: fail at once on DNS, TLS, 401 and 403, after
  // `unreachable_limit` on refusal and silence. Otherwise retried until the deadline.
  bool fail_fast = false;
  Duration unreachable_limit = std::chrono::seconds(10);
  FitPolicy fit = FitPolicy::off;
  // The nodes of one command, this one among them: first all are cordoned, then one is drained after the other.
  std::set<std::string> drained_together;
  bool review_access = true;            // SelfSubjectAccessReview before the cordon; wrong under impersonation
  std::string cordoned_by = "haulout";  // goes into the mark: who
  std::string run_id;                   // goes into the mark: which run
  std::string own_pod_uid;              // the pod we run in, evicted last; empty outside a cluster
  std::uint32_t page_size = 500;
};

}  // namespace haulout::drain
