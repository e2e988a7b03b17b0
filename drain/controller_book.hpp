// What the drain knows of the controllers of the pods that leave its node: the controllers as they were looked up,
// their pods on all nodes, how many of these left and were replaced, and what has to be looked up. ControllerGuard
// decides by it. No I/O.
//
// A pod belongs to its top-level controller: the Deployment above its ReplicaSet. If the kind above a ReplicaSet has no
// number of replicas, the pod belongs to the ReplicaSet. Not guarded are pods without a controller, finished pods,
// mirror pods, pods of DaemonSets, and pods of Jobs (single by nature).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "drain/controllers.hpp"
#include "k8s/objects.hpp"
#include "retry/clock.hpp"

namespace haulout::drain {

// A controller to look up: the direct controller of a pod, or a top-level controller that is read again.
struct ControllerQuestion {
  k8s::OwnerReference owner;
  std::string ns;
};

// The direct controllers of pods that have to be looked up, by UID.
class ControllerQuestions {
 public:
  // The controller of a pod that leaves: it is always asked for.
  void want(const std::string& owner_uid, ControllerQuestion question);
  // A controller of pods on other nodes that was not looked up yet. It is asked for only if it may belong to a
  // controller that is known.
  void found(const std::string& owner_uid, ControllerQuestion question);
  // Remembers the question without asking it, for ask_again().
  void note(const std::string& owner_uid, ControllerQuestion question);

  // Records that there was an answer, or none. A question without an answer is asked again after a pause.
  void answered(const std::string& owner_uid);
  void not_answered(const std::string& owner_uid, TimePoint now);
  // Records that a wanted controller may not be read. Returns true from the second time on.
  bool forbidden(const std::string& owner_uid);
  // Asks a remembered question again. Returns false if there is none.
  bool ask_again(const std::string& owner_uid);
  void forget_found() { found_.clear(); }

  // Returns the question to ask now. `known` says whether a found controller may belong to one that is known.
  template <class Predicate>
  std::optional<ControllerQuestion> next(TimePoint now, Predicate may_be_known) const {
    for (const auto& [uid, wanted] : wanted_)
      if (wanted.not_before <= now) return wanted.question;
    for (const auto& [uid, found] : found_)
      if (found.not_before <= now && may_be_known(found.question)) return found.question;
    return std::nullopt;
  }
  bool wants(const std::string& owner_uid) const { return wanted_.contains(owner_uid); }
  // Returns a found controller that may be a ReplicaSet of `controller`, or nullptr.
  const ControllerQuestion* may_be_of(const Controller& controller) const;
  // Next time after `now` at which a pause ends; max() if there is none.
  TimePoint next_due(TimePoint now) const;

 private:
  struct Open {
    ControllerQuestion question;
    TimePoint not_before{};
    unsigned refusals = 0;
  };
  std::map<std::string, Open> wanted_;
  std::map<std::string, Open> found_;
  std::map<std::string, ControllerQuestion> asked_;
};

// A pod of a controller, on any node. It is kept as long as a count needs it, even after it was deleted.
struct ControlledPod {
  bool seen = false;  // exists, as far as is known; if false, the fields up to `unschedulable_since` mean nothing
  std::string key;
  bool ready = false;
  bool terminating = false;
  bool bound = false;
  bool broken = false;  // not Ready, and older than `ControllerBook::starting`
  std::optional<std::string> unschedulable;
  TimePoint unschedulable_since{};
  bool leaving = false;  // a pod of the drained node that is terminating, deleted or being evicted
  // The state when the pods of its controller were counted first.
  bool here_at_first = false;
  bool ready_at_first = false;
  bool broken_at_first = false;
  bool left_before = false;    // was leaving then: its replacement may be among the pods that existed
  bool takes_nothing = false;  // its leaving creates no gap: not Ready at first, leaving before, or a replacement
};

// Values computed from the pods of a controller, valid until a pod changes.
struct ControllerTally {
  std::size_t without_replacement = 0;
  bool any_left = false;  // a pod has been leaving since the first count
  bool any_left_before = false;
  bool found_home = false;                         // a replacement has found a node
  const ControlledPod* homeless = nullptr;         // the replacement that has waited longest for a node
  const ControlledPod* homeless_of_all = nullptr;  // the same, also among the pods that existed at the first count
};

// A top-level controller, and what was counted of its pods.
struct ControllerGroup {
  Controller controller;
  std::set<std::string> owners;  // UIDs of the direct owners of its pods: the controller itself, or its ReplicaSets
  std::optional<TimePoint> left_first;
  bool counted = false;              // the next two fields are valid
  std::size_t missing_at_first = 0;  // pods without a Ready replacement at the first count
  std::optional<std::int32_t> wanted_at_first;
  bool holds = false;  // since the last read it has held pods, or has had more pods than replicas
  TimePoint read_again_at{};
  mutable std::optional<ControllerTally> tally{};  // unset: to be computed
};

class ControllerBook {
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

  static bool guarded(const k8s::Pod& pod);
  // Both return nullptr if the controller was not looked up yet.
  const Controller* of(const k8s::Pod& pod) const;
  ControllerGroup* group_of(const k8s::Pod& pod);
  const std::map<std::string, ControllerGroup>& groups() const { return groups_; }  // by UID of the controller
  // Returns nullptr if the pod is not known.
  const ControlledPod* find(const k8s::Pod& pod) const;

  // Record the answer to a question, or that there was none. `owner_uid` is the UID in the question. A question without
  // an answer is asked again later.
  void learned(const std::string& owner_uid, Controller controller, TimePoint now);
  void not_answered(const std::string& owner_uid, TimePoint now);
  // Returns false if the result of a look-up must be ignored: it says less than the book knows, or it stands in for a
  // controller that the book knows. The same applies if it gives no information about a ReplicaSet that merely may
  // belong to a known Deployment.
  bool is_answer(const std::string& owner_uid, const Controller& controller) const;
  // Returns what to look up now: controllers of pods that leave, new ReplicaSets of Deployments, and controllers that
  // hold pods.
  std::optional<ControllerQuestion> next_question(TimePoint now) const;
  ControllerQuestions& questions() { return questions_; }
  const ControllerQuestions& questions() const { return questions_; }
  // Next time after `now` at which next_question() can change without an event; max() if there is none.
  TimePoint next_due(TimePoint now) const;

  // Pods on all nodes of a namespace; nullptr: deleted. namespace_seen() says that all pods of a namespace were
  // reported.
  void pod_changed(const std::string& uid, const k8s::Pod* pod, TimePoint now, WallTime wall);
  void namespace_seen(const std::string& ns) { seen_.insert(ns); }
  bool sees(const std::string& ns) const { return seen_.contains(ns); }
  void forget_pods();
  // Pods of the drained node. A pod that has perhaps left counts as leaving: it may be without a replacement.
  void leaving(const k8s::Pod& pod, bool leaves);

  // Records the state of the group before its first pod leaves.
  void count_first(ControllerGroup& group);
  const ControllerTally& tally_of(const ControllerGroup& group) const;

 private:
  using Pods = std::map<std::string, ControlledPod>;  // by UID

  void move_owner(const std::string& owner_uid, const std::string& top);
  void merge(ControllerGroup& old, const std::string& owner_uid, ControllerGroup& into);
  void changed(const std::string& owner_uid);
  void gone(const std::string& uid, TimePoint now);
  std::size_t without_replacement(const ControllerGroup& group) const;
  bool note_pod(ControllerGroup& group, ControlledPod& pod, bool is_new) const;

  std::map<std::string, ControllerGroup> groups_;  // by UID of the top-level controller
  std::map<std::string, std::string> tops_;   // UID of the top-level controller, by UID of a pod's direct controller
  std::map<std::string, Pods> pods_;          // by UID of their direct controller
  std::map<std::string, std::string> owner_;  // UID of the direct controller, by UID of each pod that is seen
  ControllerQuestions questions_;
  std::set<std::string> seen_;  // namespaces whose pods are all known
};

}  // namespace haulout::drain
