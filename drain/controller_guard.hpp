// Decides which evictions the guards (guards.hpp) allow now, by the records of the ControllerBook: how many pods of a
// controller lack a Ready replacement, whether the replacements can be scheduled, and whether the controller has a
// single replica. A pod whose controller was not looked up yet must wait. No I/O; writes nothing to the cluster.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "drain/controller_book.hpp"
#include "drain/diagnoses.hpp"
#include "drain/guards.hpp"
#include "drain/pod_filter.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

class ControllerGuard final : public EvictionGuard {
 public:
  // Borrows `book`. Records in it which controllers have to be looked up, and which pods are being evicted.
  ControllerGuard(Guards guards, ControllerBook& book) : guards_(guards), book_(book) {}
  const Guards& guards() const { return guards_; }
  const ControllerBook& book() const { return book_; }

  // Returns why the pod must wait: the limit of its controller, a canary, or that its controller or the controller's
  // pods are not known yet. Nullopt if it need not wait.
  std::optional<Hold> held(const k8s::Pod& pod, TimePoint now) override;
  // Returns true if a single replica is treated in its own way, and the number of replicas of the pod's controller was
  // read longer ago than ControllerBook::reread. Then the book wants to read it again.
  bool reads_first(const k8s::Pod& pod, TimePoint now) override;
  // Returns true if reads_first() has returned true since the last call.
  bool take_wish_to_read() { return std::exchange(wishes_to_read_, false); }
  void leaving(const k8s::Pod& pod, Leaves leaves) override;

  // Returns true if judge() may change this decision of policy: the pod is evicted now, or when the time limit of a
  // rule has passed. A drain that may not evict the pod then must not begin.
  static bool judges(const Decision& decision);
  // Applies the guard of single replicas to the decision of policy about the pod, and returns the result.
  Decision judge(Decision decision, const k8s::Pod& pod);
  // Returns how a pod of this controller is treated if it is the controller's only replica; `allow` if it is not.
  SingleReplica single_replica(const k8s::Pod& pod, const Controller& controller) const;

  // Sets the function that returns whether a pod is replaced before it is evicted (SurgeBook::covers()).
  void set_replaced_first(std::function<bool(const k8s::Pod&)> covers) { covers_ = std::move(covers); }
  bool is_replaced_first(const k8s::Pod& pod) const { return covers_ && covers_(pod); }

  struct Unschedulable {
    const Controller* controller;
    std::string pod;
    std::string message;  // from the scheduler
  };
  // Returns the controllers whose replacements have been unschedulable for the time of the canary, or for 30 s if
  // canaries are off.
  std::vector<Unschedulable> unschedulable(TimePoint now) const;
  // Returns the next time after `now` at which unschedulable() returns one more controller without an event; max() if
  // there is none.
  TimePoint next_due(TimePoint now) const;

 private:
  void want(const k8s::Pod& pod) { book_.questions().want(question_about(pod)); }
  std::optional<Hold> held_by_group(const ControllerGroup& group, const k8s::Pod& pod, TimePoint now);
  std::optional<Hold> held_by_canary(const ControllerGroup& group, TimePoint now) const;
  std::optional<Hold> held_by_budget(const ControllerGroup& group, const k8s::Pod& pod) const;
  const ControlledPod* homeless(const ControllerGroup& group) const;
  // Returns the time at which an unschedulable replacement is reported.
  TimePoint homeless_told(const ControlledPod& pod) const;
  bool has_canaries() const { return guards_.canary > Duration::zero(); }

  Guards guards_;
  std::function<bool(const k8s::Pod&)> covers_;
  ControllerBook& book_;
  bool wishes_to_read_ = false;
  // The last answer about an ordinary pod (held_by_group()): for which tally and when it was given.
  struct {
    std::uint64_t tally = 0;
    TimePoint at{};
    std::optional<Hold> hold{};
  } answer_;
};

// Return the valid override in an annotation of the pod or else of its controller. Nullopt if there is none.
std::optional<SingleReplica> single_replica_override(const k8s::Pod& pod, const Controller& controller);
std::optional<Share> max_unavailable_override(const k8s::Pod& pod, const Controller& controller);

// Appends the diagnoses about the controllers of the pods that were not evicted yet. `pods` is Pipeline::leaving().
//   OnlyReplicaEvicted  The drain evicts the only pod of a controller, and the action for such a pod is `warn`.
//   LastReadyPods       A controller has several replicas, all its Ready pods are on this node, and neither a budget
//                       nor --max-unavailable-per-controller prevents that they are evicted together. Not reported if
//                       the drain cannot read budgets, since one may exist.
//   ReplicasUnknown     The number of replicas could not be read.
//   OverrideInvalid     An annotation has an invalid value.
// The first two are reported only if Guards::single_replica is not `allow`.
void diagnose_replicas(const std::vector<TrackedPod*>& pods, const ControllerGuard& guard, bool budgets_known,
                       std::vector<DiagnosisFact>& facts);

}  // namespace haulout::drain
