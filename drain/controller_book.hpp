// What the drain knows of the controllers of the pods that leave its node, and which evictions that allows now. It
// covers how many pods of a controller may lack a Ready replacement, whether the replacements find nodes, and whether
// the controller has a single replica. No I/O; writes nothing to the cluster.
//
// A pod belongs to its top-level controller: the Deployment above its ReplicaSet. If the kind above a ReplicaSet has no
// number of replicas, the pod belongs to the ReplicaSet. Not guarded are pods without a controller, finished pods,
// mirror pods, pods of DaemonSets, and pods of Jobs (single by nature). Pods whose controller was not looked up yet are
// held.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "drain/controllers.hpp"
#include "drain/eviction_guard.hpp"
#include "drain/guards.hpp"
#include "drain/pod_filter.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

// A controller to look up: the direct controller of a pod, or a top-level controller that is read again.
struct ControllerQuestion {
  k8s::OwnerReference owner;
  std::string ns;
};

class ControllerBook final : public EvictionGuard {
 public:
  // How often a controller that holds pods is read again, and how soon after one of its pods was deleted without the
  // drain.
  static constexpr Duration reread = std::chrono::seconds(30);
  static constexpr Duration reread_soon = std::chrono::seconds(2);
  // Pause after a look-up that failed.
  static constexpr Duration retry = std::chrono::seconds(5);
  // A pod that is not Ready counts as broken if it is older than this. If it is younger, it counts as a replacement
  // that starts.
  static constexpr Duration starting = std::chrono::minutes(10);

  explicit ControllerBook(Guards guards) : guards_(guards) {}
  const Guards& guards() const { return guards_; }

  static bool guarded(const k8s::Pod& pod);
  // Both return nullptr if the controller was not looked up yet.
  const Controller* of(const k8s::Pod& pod) const;
  const Controller* of_owner(const std::string& owner_uid) const;

  // Record the answer to a question, or that there was none. `owner_uid` is the UID in the question. A question without
  // an answer is asked again later.
  void learned(const std::string& owner_uid, Controller controller, TimePoint now);
  void not_answered(const std::string& owner_uid, TimePoint now);
  // Returns false if the result of a look-up must be ignored: it says less than the book knows, or it stands in for a
  // controller that the book knows. The same applies if it gives no information about a ReplicaSet that merely may
  // belong to a known Deployment.
  bool is_answer(const std::string& owner_uid, const Controller& controller) const;
  // Records that the controller may not be read. Returns true if that is conclusive: from the second time on, and only
  // for the controller of a pod that leaves.
  bool forbidden(const std::string& owner_uid);
  // Returns what to look up now: controllers of pods that leave, new ReplicaSets of Deployments, and controllers that
  // hold pods.
  std::optional<ControllerQuestion> next_question(TimePoint now) const;

  // Pods on all nodes of a namespace; nullptr: deleted. namespace_seen() says that all pods of a namespace were
  // reported; until then held() holds its guarded pods.
  void pod_changed(const std::string& uid, const k8s::Pod* pod, TimePoint now, WallTime wall);
  void namespace_seen(const std::string& ns) { seen_.insert(ns); }
  void forget_pods();
  // Pods of the drained node. A pod that has perhaps left counts as leaving: it may be without a replacement.
  void leaving(const k8s::Pod& pod, Leaves leaves) override { leaving(pod, leaves != Leaves::no); }
  void leaving(const k8s::Pod& pod, bool leaves);

  // Returns why the pod must wait: the limit of its controller, a canary, or a controller or pods not known yet.
  std::optional<Hold> held(const k8s::Pod& pod, TimePoint now) override;
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
  // A pod of a controller, on any node. It is kept as long as a count needs it, even after it was deleted.
  struct Member {
    bool seen = false;  // exists, as far as is known; if false, the fields up to `unschedulable_since` mean nothing
    std::string key;
    bool ready = false;
    bool terminating = false;
    bool bound = false;
    bool broken = false;  // not Ready, and older than `starting`
    std::optional<std::string> unschedulable;
    TimePoint unschedulable_since{};
    bool leaving = false;  // a pod of the drained node that is terminating, deleted or being evicted
    // The state when the group was counted first.
    bool here_at_first = false;
    bool ready_at_first = false;
    bool broken_at_first = false;
    bool left_before = false;    // was leaving then: its replacement may be among the pods that existed
    bool takes_nothing = false;  // its leaving creates no gap: not Ready at first, leaving before, or a replacement
  };
  using Members = std::map<std::string, Member>;  // by UID
  // Values computed from the members of a group, valid until a member changes.
  struct Tally {
    std::size_t without_replacement = 0;
    bool any_left = false;  // a pod has been leaving since the first count
    bool any_left_before = false;
    bool found_home = false;                  // a replacement has found a node
    const Member* homeless = nullptr;         // the replacement that has waited longest for a node
    const Member* homeless_of_all = nullptr;  // the same, also among the pods that existed at the first count
  };
  struct Group {
    Controller controller;
    std::set<std::string> owners;  // UIDs of the direct owners of its pods: the controller itself, or its ReplicaSets
    std::optional<TimePoint> left_first;
    bool counted = false;              // the next two fields are valid
    std::size_t missing_at_first = 0;  // pods without a Ready replacement at the first count
    std::optional<std::int32_t> wanted_at_first;
    bool holds = false;  // since the last read it has held pods, or has had more pods than replicas
    TimePoint read_again_at{};
    mutable bool tallied = false;
    mutable Tally tally;
  };
  struct Wanted {
    ControllerQuestion question;
    TimePoint not_before{};
    unsigned refusals = 0;
  };

  Group* group_of(const k8s::Pod& pod);
  Member* member_of(const k8s::Pod& pod);
  void want(const k8s::Pod& pod);
  void move_owner(const std::string& owner_uid, const std::string& top);
  void merge(Group& old, const std::string& owner_uid, Group& into);
  void changed(const std::string& owner_uid);
  void gone(const std::string& uid, TimePoint now);
  bool note_member(Group& group, Member& member, bool is_new) const;
  const Wanted* stranger_of(const Controller& controller) const;
  template <class Visit>
  void each_known(const Group& group, Visit visit);
  template <class Visit>
  void each_known(const Group& group, Visit visit) const;
  void count_first(Group& group);
  const Tally& tally_of(const Group& group) const;
  std::size_t without_replacement(const Group& group) const;
  std::optional<Hold> held_by_canary(const Group& group, TimePoint now) const;
  std::optional<Hold> held_by_budget(const Group& group, const k8s::Pod& pod) const;
  const Member* homeless(const Group& group) const;
  // When a replacement has waited for a node so long that it is reported.
  TimePoint homeless_told(const Member& member) const;
  bool has_canaries() const { return guards_.canary > Duration::zero(); }

  Guards guards_;
  std::map<std::string, Group> groups_;       // by UID of the top-level controller
  std::map<std::string, std::string> tops_;   // UID of the top-level controller, by UID of a pod's direct controller
  std::map<std::string, Members> members_;    // by UID of their direct controller
  std::map<std::string, std::string> owner_;  // UID of the direct controller, by UID of each member that is seen
  std::map<std::string, Wanted> strangers_;   // direct controllers of members, not looked up yet, by UID
  std::map<std::string, Wanted> wanted_;      // direct controllers of pods that leave, to look up, by UID
  std::map<std::string, ControllerQuestion> asked_;  // answered questions, by UID of the direct controller
  std::set<std::string> seen_;                       // namespaces whose pods are all known
};

template <class Visit>
void ControllerBook::each_known(const Group& group, Visit visit) {
  for (const std::string& owner : group.owners)
    if (const auto found = members_.find(owner); found != members_.end())
      for (auto& [uid, member] : found->second) visit(member);
}

template <class Visit>
void ControllerBook::each_known(const Group& group, Visit visit) const {
  for (const std::string& owner : group.owners)
    if (const auto found = members_.find(owner); found != members_.end())
      for (const auto& [uid, member] : found->second) visit(member);
}

// The valid override in an annotation of the pod or of its controller; the pod's comes first. Nullopt if there is none.
std::optional<SingleReplica> single_replica_override(const k8s::Pod& pod, const Controller& controller);
std::optional<Share> max_unavailable_override(const k8s::Pod& pod, const Controller& controller);

}  // namespace haulout::drain
