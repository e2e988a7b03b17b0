// What we know of the controllers whose pods leave the node, and what that allows now: how many of a controller's pods
// may be without a Ready replacement, whether its replacements find nodes, and whether it has but one replica. Pure
// bookkeeping; nothing is written to the cluster.
//
// A pod belongs to the controller at the top: the Deployment of its ReplicaSet. Where what is above a ReplicaSet
// is of a kind without a number of replicas, it is the ReplicaSet. Pods of Jobs (single by nature), of DaemonSets, of
// the node itself and of nobody are not guarded. Whatever was not looked up yet holds its pods.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "drain/eviction_guard.hpp"
#include "drain/guards.hpp"
#include "drain/pod_filter.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

// A controller at the top, as it was looked up.
struct Controller {
  std::string ns;
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  std::optional<std::int32_t> replicas;
  std::int32_t ready_replicas = 0;
  std::map<std::string, std::string> annotations;
  std::string unknown;  // why the number of its replicas is not known
  bool gone = false;    // it does not exist any more: nothing replaces its pods
  // Nothing of its kind has a number of replicas, and nobody can tell whether it replaces its pods: a StrimziPodSet
  // does, a workflow does not.
  bool cannot_scale = false;
  std::string in_place_of;  // UID of the one above, whose kind has no number of replicas; empty: it is at the top

  std::string text() const { return kind + " " + ns + "/" + name; }
};

// Whom to look up: a pod's own controller.
struct ControllerQuestion {
  k8s::OwnerReference owner;
  std::string ns;
};

class ControllerBook final : public EvictionGuard {
 public:
  // How often a controller is read again while it holds pods, and how soon when its pods go without us.
  static constexpr Duration reread = std::chrono::seconds(30);
  static constexpr Duration reread_soon = std::chrono::seconds(2);
  // Between two questions that were not answered.
  static constexpr Duration retry = std::chrono::seconds(5);
  // A pod that is older and still not Ready is broken; a younger one replaces another.
  static constexpr Duration starting = std::chrono::minutes(10);

  explicit ControllerBook(Guards guards) : guards_(guards) {}
  const Guards& guards() const { return guards_; }

  static bool guarded(const k8s::Pod& pod);
  // Null: not looked up yet.
  const Controller* of(const k8s::Pod& pod) const;
  const Controller* of_owner(const std::string& owner_uid) const;

  // The answers to questions; `owner_uid` as in the question. One that was not answered is asked again later.
  void learned(const std::string& owner_uid, Controller controller, TimePoint now);
  void not_answered(const std::string& owner_uid, TimePoint now);
  // False when it says less than is known, stands in for one that is known, or says nothing of what merely may be a
  // known controller's: then it is none.
  bool is_answer(const std::string& owner_uid, const Controller& controller) const;
  // It may not be read. True when that is to be believed: of the controller of a pod that leaves, the second time.
  bool forbidden(const std::string& owner_uid);
  // What is to be looked up now: controllers of pods that leave, new ReplicaSets of Deployments, and what holds pods.
  std::optional<ControllerQuestion> next_question(TimePoint now) const;

  // Pods of a namespace on all nodes; nullptr: gone. They count once the namespace was seen as a whole.
  void pod_changed(const std::string& uid, const k8s::Pod* pod, TimePoint now, WallTime wall);
  void namespace_seen(const std::string& ns) { seen_.insert(ns); }
  void forget_pods();
  // Pods of our node. One that has perhaps left may be without a replacement.
  void leaving(const k8s::Pod& pod, Leaves leaves) override { leaving(pod, leaves != Leaves::no); }
  void leaving(const k8s::Pod& pod, bool leaves);

  // By budgets of controllers and canaries.
  std::optional<Hold> held(const k8s::Pod& pod, TimePoint now) override;
  // The decision with that on single replicas.
  Decision judge(Decision decision, const k8s::Pod& pod);
  // What a pod that is the only one of this controller gets.
  SingleReplica single_replica(const k8s::Pod& pod, const Controller& controller) const;

  struct Unschedulable {
    const Controller* controller;
    std::string pod;
    std::string message;  // the scheduler's
  };
  // Controllers whose replacements have found no node for the time of the canary, or for 30 s where there is none.
  std::vector<Unschedulable> unschedulable(TimePoint now) const;
  // When something here changes without an event, later than now.
  TimePoint next_due(TimePoint now) const;

 private:
  // A pod of a controller, on whatever node. It is kept for as long as something counts it, also when it has gone.
  struct Member {
    bool seen = false;  // is there, as far as we know; only then the next six mean something
    std::string key;
    bool ready = false;
    bool terminating = false;
    bool bound = false;
    bool broken = false;  // old, and not Ready
    std::optional<std::string> unschedulable;
    TimePoint unschedulable_since{};
    bool leaving = false;  // of our node, on its way out or gone
    // How it stood when its group was counted.
    bool here_at_first = false;
    bool ready_at_first = false;
    bool broken_at_first = false;
    bool left_before = false;    // was leaving: its replacement may be among those that were here
    bool takes_nothing = false;  // when it leaves: was not Ready at first, or made up for another since
  };
  using Members = std::map<std::string, Member>;  // by UID
  // What follows from the members of a group, until one of them changes.
  struct Tally {
    std::size_t without_replacement = 0;
    bool any_left = false;  // since it was counted
    bool any_left_before = false;
    bool found_home = false;                  // a replacement
    const Member* homeless = nullptr;         // the replacement that has waited longest for a node
    const Member* homeless_of_all = nullptr;  // likewise, of those that were here at first as well
  };
  struct Group {
    Controller controller;
    std::set<std::string> owners;  // UIDs of what owns its pods: itself, or its ReplicaSets
    std::optional<TimePoint> left_first;
    bool counted = false;              // the next two are known
    std::size_t missing_at_first = 0;  // without a Ready replacement before we began
    std::optional<std::int32_t> wanted_at_first;
    bool holds = false;  // pods, since it was last read; or has more of them than it was read to want
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
  // When it has looked for a node for long enough to be spoken of.
  TimePoint homeless_told(const Member& member) const;
  bool has_canaries() const { return guards_.canary > Duration::zero(); }

  Guards guards_;
  std::map<std::string, Group> groups_;              // by UID of the controller at the top
  std::map<std::string, std::string> tops_;          // by UID of a pod's own controller: that UID
  std::map<std::string, Members> members_;           // by UID of their own controller
  std::map<std::string, std::string> owner_;         // of each member that is seen, by its UID
  std::map<std::string, Wanted> strangers_;          // owners of members that were not looked up
  std::map<std::string, Wanted> wanted_;             // by UID of a pod's own controller
  std::map<std::string, ControllerQuestion> asked_;  // likewise: what was answered
  std::set<std::string> seen_;                       // namespaces
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

// The override on a pod or its controller, if it makes sense.
std::optional<SingleReplica> single_replica_override(const k8s::Pod& pod, const Controller& controller);
std::optional<Share> max_unavailable_override(const k8s::Pod& pod, const Controller& controller);

}  // namespace haulout::drain
