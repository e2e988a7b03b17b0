// Records the controllers of the pods that must leave the node: the controllers as they were looked up, their pods on
// all nodes, how many of these were evicted and replaced, and which controllers have to be looked up. ControllerGuard
// decides by these records. Also finds the topmost controller of a pod. No I/O, except through `read` of
// top_controller().
//
// A pod belongs to its top-level controller, for example to the Deployment above its ReplicaSet. If the kind above a
// ReplicaSet has no number of replicas, the pod belongs to the ReplicaSet. The guards ignore pods without a controller,
// finished pods, mirror pods, pods of DaemonSets, and pods of Jobs, which are not replicas of each other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "k8s/objects.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::drain {

// A topmost controller, as it was looked up.
struct Controller {
  std::string ns;
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  std::optional<std::int32_t> replicas;
  std::int32_t ready_replicas = 0;
  std::map<std::string, std::string> annotations;
  std::string unknown;  // why its number of replicas is not known; empty: it is known
  bool gone = false;    // it was deleted, so nothing replaces its pods
  // Its kind has no number of replicas, or its API is not served. It is unknown whether it replaces its pods: a
  // StrimziPodSet does, a workflow does not.
  bool cannot_scale = false;
  std::optional<k8s::Rollout> rollout{};  // of a Deployment
  std::string in_place_of;  // UID of the controller above it, whose kind has no replicas; empty: it is at the top

  std::string text() const { return kind + " " + ns + "/" + name; }
};

// Make the result of a look-up: from the object that was read, for an object that does not exist, and for an object
// that could not be read for the reason `why`. Pure.
Controller controller_of(const k8s::OwnerReference& owner, const std::string& ns, k8s::Workload workload);
Controller gone_controller(const k8s::OwnerReference& owner, const std::string& ns);
Controller nothing_known_of(const k8s::OwnerReference& owner, const std::string& ns, std::string why);
// Makes the result for a controller whose kind has no number of replicas, or whose API is not served. Pure.
Controller without_scale(const k8s::OwnerReference& owner, const std::string& ns, std::string why);

// Returns true for the pods to which the guards apply (see above).
bool is_guarded(const k8s::Replica& pod);

struct TopController {
  k8s::OwnerReference owner;
  // Nullopt: `owner` is no Deployment, ReplicaSet or StatefulSet of apps/v1, so it was not read.
  std::optional<Controller> controller;
  // If `controller` is nullopt and the pod has a ReplicaSet below `owner`: that ReplicaSet. The caller may use it in
  // place of `owner`.
  std::optional<Controller> below;
};

// Reads one controller object. Must itself repeat requests that failed, because top_controller() does not.
using ReadWorkload = std::function<Task<k8s::Workload>(k8s::OwnerReference owner)>;

// Finds the topmost controller of a pod, for example the Deployment above the pod's ReplicaSet. Starts at `owner`, the
// pod's own controller. Reads only Deployments, ReplicaSets and StatefulSets of apps/v1, stops at an owner of any other
// kind, and looks for a controller only above a ReplicaSet. If an object does not exist any more, or has another UID,
// the result has a controller that is `gone`. Fails with any other error of `read`. Cancellable.
Task<TopController> top_controller(k8s::OwnerReference owner, std::string ns, ReadWorkload read);

// The name of a controller in the books: its namespace and its UID. A pod can name the UID of a controller of another
// namespace, which does not own it.
std::string controller_key(const std::string& ns, const std::string& uid);

// The two texts of a controller_key(). ByController finds a controller by them, so that no key has to be made.
struct ControllerName {
  std::string_view ns, uid;
  bool operator==(const ControllerName&) const = default;
};
ControllerName name_in(std::string_view key);
struct ControllerHash {
  using is_transparent = void;
  std::size_t operator()(const ControllerName& name) const { return std::hash<std::string_view>()(name.uid); }
  std::size_t operator()(std::string_view key) const { return (*this)(name_in(key)); }
};
struct ControllerEqual {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return a == b; }
  bool operator()(const ControllerName& a, std::string_view b) const { return a == name_in(b); }
};
template <class T>
using ByController = std::unordered_map<std::string, T, ControllerHash, ControllerEqual>;

// A controller to look up: the direct controller of a pod, or a top-level controller that is read again.
struct ControllerQuestion {
  k8s::OwnerReference owner;
  std::string ns;
  // The Deployment above `owner`, if the mark of a surged pod names it. It is looked up if `owner` does not exist.
  std::optional<k8s::OwnerReference> above{};

  std::string key() const { return controller_key(ns, owner.uid); }
};

// Returns the question about the direct controller of the pod, which must have one.
ControllerQuestion question_about(const k8s::Replica& pod);

// Schedules the look-ups of the direct controllers of pods. `key` is always the controller_key() of such a controller.
class ControllerQuestions {
 public:
  // Adds the controller of a pod that must leave. It is always looked up.
  void want(ControllerQuestion question);
  // Adds the controller of a pod on any node, if it was not looked up yet. It is looked up only if it may belong to a
  // top-level controller that is known.
  void found(ControllerQuestion question);
  // Stores the question for ask_again(). Does not schedule a look-up.
  void note(ControllerQuestion question);

  // Record that the look-up succeeded or failed. A look-up that failed is repeated after a pause.
  void answered(const std::string& key);
  void not_answered(const std::string& key, TimePoint now);
  // Records that the server answered 403 for a controller of want(). Returns true from the second such answer on.
  bool forbidden(const std::string& key);
  // Schedules the look-up of a stored question again. Returns false if none is stored.
  bool ask_again(const std::string& key);
  void forget_found() { found_.clear(); }

  // Returns the look-up that is due now, or nullopt. `may_be_known` returns whether a controller of found() may belong
  // to a top-level controller that is known.
  template <class Predicate>
  std::optional<ControllerQuestion> next(TimePoint now, Predicate may_be_known) const {
    for (const auto& [uid, wanted] : wanted_)
      if (wanted.not_before <= now) return wanted.question;
    for (const auto& [uid, found] : found_)
      if (found.not_before <= now && may_be_known(found.question)) return found.question;
    return std::nullopt;
  }
  bool wants(const std::string& key) const { return wanted_.contains(key); }
  // Returns a controller of found() that may be a ReplicaSet of `controller`, or nullptr.
  const ControllerQuestion* may_be_of(const Controller& controller) const;
  // Returns the next time after `now` at which a pause ends; max() if there is none.
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

// A pod of a controller, on any node. The entry is kept as long as a count needs it, even after the pod was deleted.
struct ControlledPod {
  bool seen = false;         // exists, as far as is known; if false, the fields up to `surged_elsewhere` are not valid
  std::uint64_t number = 0;  // counts the pods of the book in the order in which it has seen them
  std::optional<WallTime> created;
  std::string key;
  bool owned = false;  // has an ownerReference with controller: true
  bool ready = false;
  bool terminating = false;
  bool bound = false;
  bool broken = false;  // not Ready, and older than `ControllerBook::starting`
  std::optional<std::string> unschedulable;
  TimePoint unschedulable_since{};
  bool surged_elsewhere = false;  // the drain of another node has surged it, so it leaves soon
  bool leaving = false;           // a pod of the drained node that is terminating, deleted or being evicted
  // The pod's state at the first count of its controller's pods.
  bool here_at_first = false;
  bool ready_at_first = false;
  bool broken_at_first = false;
  bool left_before = false;  // it was `leaving` at the first count, which may have counted its replacement, too
  // Its eviction does not raise the number of missing pods: it was not Ready at the first count, or it is
  // `left_before`, or it is itself a replacement.
  bool takes_nothing = false;
  bool came_ready = false;  // it was created after the first count, and it was Ready when it became `leaving`

  // Returns true if the pod exists, and neither terminates nor leaves.
  bool stays() const { return seen && !terminating && !leaving; }
};

// Values computed from the pods of a controller, valid until a pod changes.
struct ControllerTally {
  std::uint64_t count = 0;  // no two tallies of a book have the same
  std::size_t without_replacement = 0;
  std::uint64_t last_number = 0;  // the largest ControlledPod::number; pods that are seen later have larger ones
  std::size_t ready = 0;          // Ready pods that neither leave nor are surged on another node
  std::size_t owned = 0;          // pods that have an owner, and neither terminate nor leave
  bool any_left = false;          // a pod has become `leaving` since the first count
  bool any_left_before = false;
  bool found_home = false;  // a replacement was scheduled to a node
  // The replacement that has been unschedulable longest; of several, the one that was seen first.
  const ControlledPod* homeless = nullptr;
  // Like `homeless`, but also among the pods that existed at the first count.
  const ControlledPod* homeless_of_all = nullptr;
};

// A top-level controller, and the counts of its pods.
struct ControllerGroup {
  Controller controller;
  std::set<std::string> owners;  // the direct owners of its pods (controller_key()): itself, or its ReplicaSets
  std::optional<TimePoint> left_first;
  bool counted = false;  // the first count was made, so the next two fields are valid
  // The number of replicas that had neither a Ready nor a broken pod at the first count. If the number of replicas is
  // unknown: the number of pods that were starting.
  std::size_t missing_at_first = 0;
  std::optional<std::int32_t> wanted_at_first;
  // Since the controller was last read, pods were parked because of it, or it had more pods than replicas. So it is
  // read again at `read_again_at`.
  bool holds = false;
  TimePoint read_again_at{};
  TimePoint looked_at{};                           // when it was last looked up, also if that failed
  mutable std::optional<ControllerTally> tally{};  // unset: to be computed
};

class ControllerBook {
 public:
  // A controller because of which pods are parked is read again every `reread`. So is a ReplicaSet that may belong to
  // it, if that is not known. A controller is read again after `reread_soon` if one of its pods was deleted without the
  // drain. So is any controller that got more pods than replicas.
  static constexpr Duration reread = std::chrono::seconds(30);
  static constexpr Duration reread_soon = std::chrono::seconds(2);
  // Pause after a look-up that failed.
  static constexpr Duration retry = std::chrono::seconds(5);
  // A pod that is not Ready counts as broken if it is older than this. A younger one counts as a replacement that is
  // starting.
  static constexpr Duration starting = std::chrono::minutes(10);

  // `node` is the node that is drained.
  explicit ControllerBook(std::string node = {}) : node_(std::move(node)) {}
  ControllerBook(const ControllerBook&) = delete;  // `owners_` points into `groups_`
  ControllerBook& operator=(const ControllerBook&) = delete;

  // Return the topmost controller of the pod, and its group; nullptr if the controller was not looked up yet.
  const Controller* of(const k8s::Replica& pod) const;
  ControllerGroup* group_of(const k8s::Replica& pod);
  const std::map<std::string, ControllerGroup>& groups() const { return groups_; }  // by controller_key()
  // Returns nullptr if the pod is not known.
  const ControlledPod* find(const k8s::Replica& pod) const;

  // Record that a look-up succeeded with this controller, or that it failed. `owner_uid` is the UID in the question. A
  // look-up that failed is repeated later.
  void learned(const std::string& owner_uid, Controller controller, TimePoint now);
  void not_answered(const ControllerQuestion& question, TimePoint now);
  // Returns false if the result of a look-up must be ignored. In the first case `controller` is a ReplicaSet that was
  // returned in place of the controller above it (Controller::in_place_of), and the book has a group for that one. In
  // all other cases the look-up found out nothing (Controller::unknown), and one of these holds: the book knows the
  // controller's number of replicas already; the book has another top-level controller for `owner_uid`; or the question
  // is about a ReplicaSet of found(), which may belong to a known Deployment.
  bool is_answer(const std::string& owner_uid, const Controller& controller) const;
  // Returns the controller to look up now: the controller of a pod that must leave, a new ReplicaSet of a Deployment,
  // or a controller that is read again (ControllerGroup::holds). Nullopt if no look-up is due.
  std::optional<ControllerQuestion> next_question(TimePoint now) const;
  ControllerQuestions& questions() { return questions_; }
  const ControllerQuestions& questions() const { return questions_; }
  // Returns the next time after `now` at which next_question() can change without an event; max() if there is none.
  TimePoint next_due(TimePoint now) const;

  // Records a change of a pod on any node; nullptr: it was deleted. namespace_seen() records that all pods of the
  // namespace were reported.
  void pod_changed(const std::string& uid, const k8s::Replica* pod, TimePoint now, WallTime wall);
  void namespace_seen(const std::string& ns) { seen_.insert(ns); }
  bool sees(const std::string& ns) const { return seen_.contains(ns); }
  void forget_pods();
  // Returns false if no pod was ever unschedulable, so that nobody needs to look for one.
  bool any_was_unschedulable() const { return any_was_unschedulable_; }
  // Records whether a pod of the drained node is terminating, deleted or being evicted. If that is uncertain, the
  // caller passes true, because the pod may lack a replacement.
  void leaving(const k8s::Replica& pod, bool leaves);

  // Makes the first count of the group's pods. Called once, before the first of its pods is evicted.
  void count_first(ControllerGroup& group);
  const ControllerTally& tally_of(const ControllerGroup& group) const;
  // Returns the pods of the group that exist and stay for now: they neither terminate nor leave. In no order. Valid
  // until a pod changes.
  std::vector<const ControlledPod*> staying(const ControllerGroup& group) const;

 private:
  // A direct controller: the top-level controller to which it belongs, if that is known, and its pods by UID. The
  // guards are asked about hundreds of pods after each event, so both are found by hash.
  struct Owner {
    ControllerGroup* group = nullptr;  // in `groups_`
    bool noted = false;                // the question about it was stored (ControllerQuestions::note())
    std::unordered_map<std::string, ControlledPod> pods;
  };

  ControllerGroup* group_at(const ControllerName& owner) const;
  void move_owner(const std::string& owner, const std::string& top);
  void merge(ControllerGroup& old, Owner& owner, ControllerGroup& into);
  void gone(const std::string& uid, TimePoint now);

  std::string node_;
  // Controllers are named by controller_key().
  std::map<std::string, ControllerGroup> groups_;       // by top-level controller
  ByController<Owner> owners_;                          // by direct controller; top-level ones are in it, too
  std::unordered_map<std::string, std::string> owner_;  // the direct controller, by UID of each pod that is seen
  std::uint64_t last_number_ = 0;
  mutable std::uint64_t tallies_ = 0;  // how many were computed
  ControllerQuestions questions_;
  std::set<std::string> seen_;  // namespaces whose pods are all known
  bool any_was_unschedulable_ = false;
};

// Returns true if `group`, the controller of the pod, was looked up longer ago than ControllerBook::reread. Then
// ControllerBook::next_question() returns it.
bool is_read_first(ControllerBook& book, const k8s::Pod& pod, ControllerGroup& group, TimePoint now);

}  // namespace haulout::drain
