// The guards, which protect the pods of one controller beyond PodDisruptionBudgets: their options, and EvictionGuard,
// the interface through which the pipeline asks before an eviction. VolumeTurns (volume_turns.hpp) implements it, too.
// The limit for single replicas changes the decision of policy instead (ControllerGuard::judge()). Guards write nothing
// to the cluster, except surge, which takes a label off pods (surge_feed.hpp). All are off by default and then cost no
// request. Plain data; parsing is pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "k8s/objects.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::drain {

// The action for a pod that is the only replica of its controller. Its service is down from the eviction until the
// replacement is Ready.
enum class SingleReplica { allow, warn, block };

// Which pods are surged: the drain has a replacement created and waits until it is Ready before it evicts the pod
// (surge_book.hpp). `single_replica`: pods of Deployments with one replica. `closed_budget`: pods of Deployments whose
// PodDisruptionBudget allows no disruption although all its pods are healthy. `all`: all Ready pods of Deployments.
enum class Surge { off, single_replica, closed_budget, all };

// A number of pods ("2"), or a percentage of a controller's replicas ("25%").
struct Share {
  std::uint32_t value = 1;
  bool percent = false;
  bool operator==(const Share&) const = default;
};

struct Guards {
  SingleReplica single_replica = SingleReplica::allow;
  // While at least this many pods of a controller lack a Ready replacement, the drain evicts no Ready pod of it. Pods
  // that the drain evicted count, and replicas that were missing before. Unset means no limit.
  std::optional<Share> max_unavailable;
  // The drain evicts one pod of each controller first. It evicts the others when the replacement has been scheduled to
  // a node, or after this time. It evicts none while a replacement is unschedulable. Zero turns this guard off.
  Duration canary{};
  Surge surge = Surge::off;
  // How long a surged pod waits until its replacement is Ready. After that it is given back to its ReplicaSet.
  Duration surge_limit = std::chrono::minutes(5);
  bool operator==(const Guards&) const = default;

  // Returns true if a guard needs the pods on other nodes.
  bool follows_pods() const { return max_unavailable.has_value() || canary > Duration::zero() || surge != Surge::off; }
  bool any() const { return follows_pods() || single_replica != SingleReplica::allow; }
};

// Annotations that override an option that is on. If the option is off, they have no effect. A pod or its controller
// can have them; those of a controller outside the group apps are not read. The pod's annotation has precedence, unless
// its value is invalid.
inline constexpr std::string_view single_replica_annotation = "haulout.dev/single-replica";
inline constexpr std::string_view max_unavailable_annotation = "haulout.dev/max-unavailable";
// Of a pod (so of its template), or else of its namespace. "true": the pod is surged in every mode but `off`. "false":
// it is never surged.
inline constexpr std::string_view surge_annotation = "haulout.dev/surge";

// Parses a whole number of at least 1, or a percentage from 1% to 100%. Fails with Errc::invalid for any other text.
Result<Share> parse_share(std::string_view text);
std::string to_string(const Share& share);
// Returns how many of `replicas` pods the share is, rounded down but at least 1, because a drain that may evict nothing
// never ends. A percentage of an unknown number of replicas is 1.
std::size_t share_of(const Share& share, std::optional<std::int32_t> replicas);

// Parses "allow", "warn" or "block"; returns nullopt for any other text.
std::optional<SingleReplica> parse_single_replica(std::string_view text);
std::string_view to_string(SingleReplica policy);

// Interface of guards: conditions that the pipeline checks before it evicts a pod, in addition to budgets and places.
// Each guard keeps its own state, and decides whether the pod may be evicted now. If not, the pod is parked, so it
// holds no place and does not delay later tiers (P9). No I/O.
class EvictionGuard {
 public:
  struct Hold {
    std::string reason;
    std::string message;
    TimePoint until = TimePoint::max();  // when the pipeline checks the guard again; an event may cause that earlier
  };

  // State of a pod. `yes`: its eviction was sent, or it is terminating or deleted. `perhaps`: the response to its
  // eviction was lost, and the eviction will be sent again. `unawaited`: it is terminating, but the drain does not wait
  // for it. `no`: none of these.
  enum class Leaves { no, perhaps, unawaited, yes };

  virtual ~EvictionGuard() = default;
  // Returns nullopt if this guard allows the eviction of the pod now.
  virtual std::optional<Hold> held(const k8s::Pod& pod, TimePoint now) = 0;
  // Called when nothing else keeps the pipeline from sending the request for the pod. Returns true if what this guard
  // knows is too old: the request has to wait until the guard has read it again.
  virtual bool reads_first(const k8s::Pod&, TimePoint) { return false; }
  // Called for each change of the pod's state, also with `no` for a pod that never was leaving, and repeatedly with the
  // same value. Not called when a pod that the drain leaves on the node is deleted.
  virtual void leaving(const k8s::Pod& pod, Leaves leaves) = 0;

 protected:
  EvictionGuard() = default;
  EvictionGuard(const EvictionGuard&) = default;
  EvictionGuard& operator=(const EvictionGuard&) = default;
};

}  // namespace haulout::drain
