// Decides which evictions the guards (guards.hpp) allow now, by what the ControllerBook knows: how many pods of a
// controller may lack a Ready replacement, whether the replacements find nodes, and whether the controller has a single
// replica. Pods whose controller was not looked up yet are held. No I/O; writes nothing to the cluster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drain/controller_book.hpp"
#include "drain/diagnoses.hpp"
#include "drain/eviction_guard.hpp"
#include "drain/guards.hpp"
#include "drain/pod_filter.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

class ControllerGuard final : public EvictionGuard {
 public:
  // Borrows `book`. Notes there which controllers are to be looked up, and which pods leave.
  ControllerGuard(Guards guards, ControllerBook& book) : guards_(guards), book_(book) {}
  const Guards& guards() const { return guards_; }
  const ControllerBook& book() const { return book_; }

  // Returns why the pod must wait: the limit of its controller, a canary, or a controller or pods not known yet.
  std::optional<Hold> held(const k8s::Pod& pod, TimePoint now) override;
  void leaving(const k8s::Pod& pod, Leaves leaves) override { book_.leaving(pod, leaves != Leaves::no); }

  // Returns `decision`, changed if the guard of single replicas applies to the pod.
  Decision judge(Decision decision, const k8s::Pod& pod);
  // Returns how a pod of this controller is treated if it is the controller's only replica; `allow` if it is not.
  SingleReplica single_replica(const k8s::Pod& pod, const Controller& controller) const;

  struct Unschedulable {
    const Controller* controller;
    std::string pod;
    std::string message;  // from the scheduler
  };
  // Controllers whose replacements have found no node for the time of the canary, or for 30 s if canaries are off.
  std::vector<Unschedulable> unschedulable(TimePoint now) const;
  // Next time after `now` at which a decision can change without an event; max() if there is none.
  TimePoint next_due(TimePoint now) const;

 private:
  void want(const k8s::Pod& pod) { book_.questions().want(pod.controller->uid, {*pod.controller, pod.ns}); }
  std::optional<Hold> held_by_canary(const ControllerGroup& group, TimePoint now) const;
  std::optional<Hold> held_by_budget(const ControllerGroup& group, const k8s::Pod& pod) const;
  const ControlledPod* homeless(const ControllerGroup& group) const;
  // When a replacement has waited for a node so long that it is reported.
  TimePoint homeless_told(const ControlledPod& pod) const;
  bool has_canaries() const { return guards_.canary > Duration::zero(); }

  Guards guards_;
  ControllerBook& book_;
};

// The valid override in an annotation of the pod or of its controller; the pod's comes first. Nullopt if there is none.
std::optional<SingleReplica> single_replica_override(const k8s::Pod& pod, const Controller& controller);
std::optional<Share> max_unavailable_override(const k8s::Pod& pod, const Controller& controller);

// Diagnoses about controllers with few replicas whose pods have yet to leave the node. Appends these facts. `pods` is
// Pipeline::leaving().
//   OnlyReplicaEvicted    The drain evicts the only pod of a controller.
//   LastReadyPods   All Ready pods of a controller are on this node, and neither a budget nor
//                     --max-unavailable-per-controller keeps them from leaving together. Not reported if the drain
//                     cannot read budgets, since one may exist.
//   ReplicasUnknown  The number of replicas could not be found out.
//   OverrideInvalid  An annotation has an invalid value.
// The first two are reported only if Guards::single_replica is not `allow`.
void diagnose_replicas(const std::vector<TrackedPod*>& pods, const ControllerGuard& guard, bool budgets_visible,
                       std::vector<DiagnosisFact>& facts);

}  // namespace haulout::drain
