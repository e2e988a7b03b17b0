// What is known of the volumes attached to one node, and which of them the drain waits for. Pure: pods,
// VolumeAttachments and time come in, verdicts and diagnoses come out. No I/O, no waiting.
//
// A volume is detached when its VolumeAttachment has gone: nothing else counts, no deadline either (P4). Which pods use
// it is known through the claim that its PersistentVolume is bound to. Waited for are volumes whose users all had to
// leave, from the moment that the last of them has gone, and whatever is being detached already. A volume that a pod
// uses which stays is kept; one that no pod of the node was ever seen to use is leaked, after it has stood like that
// for leak_hold, unless the Node's status names it then: its pods left before we looked. Keyed by the UID of the
// VolumeAttachment. A change that is told twice changes nothing.
#pragma once

#include <map>
#include <set>

#include "drain/diagnoses.hpp"
#include "drain/observer.hpp"
#include "drain/reattach.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

// Claims by "namespace/name".
struct ClaimUse {
  std::set<std::string> staying{};  // of pods that stay on the node
  std::set<std::string> leaving{};  // of pods that must leave and are still there
  std::set<std::string> left{};     // of pods that have vanished, or stay but have finished
  // Of those that leave or have left: something brings a pod back that uses it.
  std::set<std::string> coming_back{};
};
// A claim of its name may have been made anew since: worth a look at that one. What is bound is not.
bool may_be_of_an_earlier_claim(const k8s::PersistentVolume& volume);
// The claim that now has the name in the volume's claimRef has this volume, and not only an earlier one of that name.
// What a claim is bound to is what its pods mount, so that decides. One that is bound to nothing yet has no pods that
// run: then the UIDs tell, and where one of them is missing the volume counts as the claim's and is waited for.
bool is_volume_of(const k8s::PersistentVolume& volume, const k8s::PersistentVolumeClaim& claim);
ClaimUse claim_use(const std::map<std::string, TrackedPod>& pods);
// A pod that must leave, or has left, has a claim.
bool any_claim_leaves(const std::map<std::string, TrackedPod>& pods);

class VolumeBook {
 public:
  using Emit = std::function<void(EventType, const VolumeReport&)>;
  // The controllers need no more than this to begin with the detaching of what a pod has used that we never saw.
  static constexpr Duration leak_hold = std::chrono::seconds(15);

  // `limit`: after how long without its last user a volume counts as stuck; 0: never. `reattach_limit`: how long
  // another node may take to have what was detached here (reattach.hpp); 0: VolumeAttachments of other nodes are
  // ignored.
  VolumeBook(std::string node, Duration limit, Emit emit, Duration reattach_limit = Duration::zero())
      : node_(std::move(node)), limit_(limit), reattach_limit_(reattach_limit), emit_(std::move(emit)) {}
  // No wait for another node goes on beyond that.
  void end_reattaching_at(TimePoint until) { reattach_until_ = until; }

  // This run has begun before: pods that we never saw may have used what is attached, so nothing counts as leaked.
  void expect_all() { expect_all_ = true; }

  // UIDs of VolumeAttachments that an earlier part of this run found leaked. They are again, also in a run that goes
  // on, until a pod is seen to use them.
  void expect_leaked(std::set<std::string> uids) { leaked_ = std::move(uids); }
  const std::set<std::string>& leaked() const { return leaked_; }

  // nullptr: it has gone.
  void attachment_changed(const std::string& uid, const k8s::VolumeAttachment* attachment, TimePoint now,
                          WallTime wall);
  // All that there are, by a most-recent list that was asked for at `asked`: what was first seen since may be missing
  // in it.
  void reconcile(const std::vector<k8s::VolumeAttachment>& listed, TimePoint asked, TimePoint now, WallTime wall);
  // PersistentVolumes whose claims are not known yet.
  std::vector<std::string> unresolved() const;
  // Empty: it has none, or there is no such PersistentVolume.
  void resolved(const std::string& volume, std::string claim);
  // One would count as leaked now, and it is not known what the Node's status says of it.
  bool asks_for_node(TimePoint now) const;
  // Names of the VolumeAttachments of what is in use on the node or still has its controller, as a request made at
  // `asked` said. That is waited for from then on: its name goes when it is unmounted and about to be detached.
  void node_holds(const std::set<std::string>& attachments, TimePoint asked);
  // Judges all of them.
  void look(const ClaimUse& use, TimePoint now, WallTime wall);

  // Nothing is attached.
  bool empty() const { return entries_.empty(); }
  // What is attached, as of the last look: visit(const VolumeReport&, bool is_stuck).
  template <class Visit>
  void each_attached(TimePoint now, Visit visit) const {
    for (const auto& [uid, entry] : entries_) visit(entry.report, is_stuck(entry, now));
  }
  // What is detached, and waited for until another node has it, as of the last look.
  template <class Visit>
  void each_reattaching(Visit visit) const {
    for (const Detached& volume : detached_)
      if (volume.report.reattach == Reattach::waiting) visit(volume.report);
  }
  bool any_reattaching() const;
  // As of the last look: nothing is left to wait for, on this node.
  bool all_detached() const;
  // Since when the first of them has been waited for; max() when none is.
  TimePoint waiting_since() const;
  // One has been waited for longer than the limit, and how to say so.
  std::optional<std::string> past_limit(TimePoint now) const;
  // The volumes that are still waited for, for people; empty when there are none.
  std::string waiting_for() const;
  // When the next judgement can change without an event, later than `now`; max() if never.
  TimePoint next_wake(TimePoint now) const;
  std::size_t count(VolumeOutcome outcome) const;
  void diagnose(TimePoint now, std::vector<DiagnosisFact>& facts) const;
  // Also those that have been detached. Sorted by PersistentVolume.
  std::vector<VolumeReport> reports() const;

 private:
  struct Entry {
    k8s::VolumeAttachment attachment;
    VolumeReport report;
    TimePoint seen;
    std::optional<TimePoint> unused_since;
  };
  struct Detached {
    VolumeReport report;
    TimePoint at;
  };
  struct Other {
    std::string node;
    bool attached = false;
    std::string error;
  };
  // By PersistentVolume and UID of the VolumeAttachment.
  using Others = std::map<std::pair<std::string, std::string>, Other>;
  void come_back(const std::string& uid, const std::string& attachment);
  void other_changed(const std::string& uid, const k8s::VolumeAttachment* attachment);
  // The attachment to another node that has come furthest; nullptr: there is none.
  const Other* elsewhere(const std::string& volume) const;
  ReattachFacts facts_of(const Detached& volume, const ClaimUse& use, TimePoint now) const;
  static std::string say_reattach(const VolumeReport& report, const ReattachFacts& facts, const Other* other);
  void look_elsewhere(const ClaimUse& use, TimePoint now);
  // When it counts as leaked unless somebody turns out to have it; max(): somebody has.
  static TimePoint leaks_at(const Entry& entry);
  VolumeOutcome judge(const Entry& entry, const ClaimUse& use, TimePoint now) const;
  bool is_stuck(const Entry& entry, TimePoint now) const;

  std::string node_;
  Duration limit_;
  Duration reattach_limit_;
  TimePoint reattach_until_ = TimePoint::max();
  Emit emit_;
  bool expect_all_ = false;
  std::map<std::string, Entry> entries_;       // by UID of the VolumeAttachment
  std::set<std::string> leaked_;               // UIDs, once it has been found
  std::map<std::string, TimePoint> gone_;      // by UID; an event that still speaks of one is a repetition
  std::map<std::string, std::string> claims_;  // by PersistentVolume
  std::set<std::string> left_;  // claims of pods that left, or were about to, whatever became of the pods
  std::set<std::string> held_;  // names, as the Node's status has told so far
  TimePoint node_asked_ = TimePoint::min();
  std::vector<Detached> detached_;
  Others others_;                                    // none unless there is a reattach limit
  std::map<std::string, std::string> other_volume_;  // PersistentVolume, by UID of the VolumeAttachment
  TimePoint reattach_wake_ = TimePoint::max();       // as of the last look
};

}  // namespace haulout::drain
