// The rules of the ReplicaSet controller: which pods a ReplicaSet owns, which surplus pods it deletes, and whether a
// ResourceQuota refuses a new pod. No I/O; nothing fails.
//
// The simulation leaves out these parts of the real controller:
//   - Expectations: after it has created or deleted pods, the real controller does neither again until it has seen them
//     all, or for five minutes. It loses sight of one if the labels of a pod change while the pod is being deleted. So
//     a release at the time of a scale-down may get its replacement minutes later.
//   - Batches: the real controller creates 1, 2, 4, … pods at a time, and 500 at most in one go.
//   - In the order of deletion: the restarts of containers and the creation time.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "placement/selector.hpp"
#include "sim/objects.hpp"
#include "sim/store.hpp"
#include "sim/world.hpp"

namespace haulout::sim {

// Returns true if the pod is neither terminating nor finished. A ReplicaSet counts only such pods.
bool is_active(const Json& pod);

// Claims the pods of ReplicaSets. It keeps what it has found out about each ReplicaSet and its pods, because a
// ReplicaSet claims its pods after every change of one of them.
class Claims {
 public:
  explicit Claims(World& world) : world_(world) {}

  // Returns how many active pods the ReplicaSet has, after it has claimed them as the real controller does: it releases
  // each of its active pods that its selector does not match, by removing the ownerReference, and adopts each active
  // pod that its selector matches and that has no controller. A ReplicaSet without a selector, or with one that does
  // not match its own template, neither releases nor adopts: a real server accepts no such ReplicaSet.
  std::size_t claim_pods(const Object& set);
  // Returns the active pods of a ReplicaSet that has just claimed its pods, sorted by name.
  std::vector<Object> active_pods(const Json& set) const;
  // Records a change of a pod.
  void note(const Change& change);
  // Forgets the ReplicaSet of this key, which was deleted.
  void forget(const Key& set);
  // Returns how many pods it has examined so far, as a measure of work.
  std::uint64_t examined() const { return examined_; }

 private:
  enum class Fate { counts, does_not_count, to_release };
  struct Judged {
    Object pod;
    Fate fate;
  };
  struct Known {
    Object set;
    std::optional<placement::Selector> selector;
    std::vector<Judged> pods{};  // those that name the ReplicaSet as their controller, in no order
  };
  Fate fate_of(const Known& known, const Object& pod);
  Known& known_of(const Object& set);
  Known* controller_of(const Object& pod);
  std::vector<Object> with(const Known& known, Fate fate) const;

  World& world_;
  std::unordered_map<std::string, Known> known_;  // by UID of the ReplicaSet
  std::uint64_t examined_ = 0;
};
// Returns the ReplicaSets that would adopt the pod.
std::vector<Object> sets_that_select(const Store& store, const Json& pod);

// Sorts the pods of one ReplicaSet in the order in which the controller deletes surplus pods, first one first:
// unassigned, pending, not Ready, lower deletion cost, more active pods of `related` on the same node, Ready for a
// shorter time (compared by powers of two), the smaller UID.
void sort_for_deletion(std::vector<Object>& pods, const std::vector<Object>& related, WallTime now);
// Returns the pods of all ReplicaSets that have the same controller as this one; its own pods if it has no controller.
std::vector<Object> related_pods(const Store& store, const Json& set);

// Returns true if a ResourceQuota of the namespace refuses one more pod: its limit of `pods` counts all unfinished
// pods, its limit of `count/pods` all pods. Quotas with scopes, and other limits, refuse nothing. A deleted pod makes
// room at once; on a real server that takes seconds, because status.used is computed later.
bool quota_refuses_pod(const Store& store, const std::string& ns);

}  // namespace haulout::sim
