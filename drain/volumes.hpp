// Keeps track of the volumes attached to one node, and decides which of them the drain waits for. Pure: pods,
// VolumeAttachments and time come in; outcomes and diagnoses come out. No I/O, no waiting.
//
// A volume is detached when its VolumeAttachment was deleted. Nothing else counts, not even a deadline (P4). The claim
// to which its PersistentVolume is bound shows which pods use the volume.
//   - The drain waits for a volume whose users all had to leave, from the time when the last of them was deleted. It
//     also waits for every volume that is already being detached.
//   - A volume that a staying pod uses is `kept`.
//   - A volume that no pod of the node was ever seen to use is `leaked` after `leak_hold`. But if the Node's status
//     names it then, its pods were deleted before the drain looked, and the drain waits for it.
// The key is the UID of the VolumeAttachment. A change that is reported twice has no effect the second time.
#pragma once

#include <map>
#include <set>

#include "drain/diagnoses.hpp"
#include "drain/observer.hpp"
#include "drain/reattach.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

// The claims that the pods of the node use, as "namespace/name".
struct ClaimUse {
  std::set<std::string> staying{};  // claims of pods that stay on the node
  std::set<std::string> leaving{};  // claims of pods that must leave and still exist
  std::set<std::string> left{};     // claims of pods that were deleted, or that stay but have finished
  // Claims of pods that must leave or were deleted, if a replacement pod will use the claim again.
  std::set<std::string> coming_back{};
};
// Returns true if the claim in the volume's claimRef may have been deleted and created again under the same name. The
// caller should then read the claim that has this name now, and call is_volume_of(). Returns false for a volume that is
// Bound.
bool may_be_of_an_earlier_claim(const k8s::PersistentVolume& volume);
// Returns true if the volume belongs to `claim`. `claim` has the name in the volume's claimRef, but the claimRef may
// mean a deleted claim of the same name. If `claim` is bound, its binding decides, because pods mount the volume that
// it names. If it is not bound, no running pod uses it, and the UIDs decide. If a UID is missing, returns true, so that
// the drain waits for the volume.
bool is_volume_of(const k8s::PersistentVolume& volume, const k8s::PersistentVolumeClaim& claim);
ClaimUse claim_use(const std::map<std::string, TrackedPod>& pods);
// True if a pod that must leave, or was deleted, has a claim.
bool any_claim_leaves(const std::map<std::string, TrackedPod>& pods);

class VolumeBook {
 public:
  using Emit = std::function<void(EventType, const VolumeReport&)>;
  // A volume that no pod uses counts as leaked only after this time. Its last pod may have been deleted before the
  // drain looked: then Kubernetes starts to detach the volume within this time, and the drain waits for it.
  static constexpr Duration leak_hold = std::chrono::seconds(15);

  // `limit`: a volume counts as stuck if it is still attached this long after its last user was deleted; 0 disables
  // that. `reattach_limit`: how long another node may take to attach a volume that was detached here (reattach.hpp); if
  // it is 0, VolumeAttachments of other nodes are ignored.
  VolumeBook(std::string node, Duration limit, Emit emit, Duration reattach_limit = Duration::zero())
      : node_(std::move(node)), limit_(limit), reattach_limit_(reattach_limit), emit_(std::move(emit)) {}
  // Sets the time at which the drain stops waiting until other nodes have attached the detached volumes.
  void end_reattaching_at(TimePoint until) { reattach_until_ = until; }

  // For a drain that continues a run of another process: pods that only that process saw may have used the attached
  // volumes. So the drain also waits for volumes that would count as leaked, except those of expect_leaked().
  void expect_all() { expect_all_ = true; }

  // UIDs of VolumeAttachments that an earlier part of this run found leaked. They count as leaked again, also after
  // expect_all(), until they are being detached, the Node's status names them, or a pod uses them.
  void expect_leaked(std::set<std::string> uids) { leaked_ = std::move(uids); }
  const std::set<std::string>& leaked() const { return leaked_; }

  // nullptr: the VolumeAttachment was deleted.
  void attachment_changed(const std::string& uid, const k8s::VolumeAttachment* attachment, TimePoint now,
                          WallTime wall);
  // Replaces the known VolumeAttachments of the node by a most-recent list, which was requested at `asked`. Keeps those
  // that were first seen after `asked`, because the list may not have them. Skips entries of other nodes.
  void reconcile(const std::vector<k8s::VolumeAttachment>& listed, TimePoint asked, TimePoint now, WallTime wall);
  // Returns the PersistentVolumes whose claims are not known yet.
  std::vector<std::string> unresolved() const;
  // Stores the claim of the PersistentVolume `volume`. `claim` is empty if the volume has no claim or does not exist.
  void resolved(const std::string& volume, std::string claim);
  // Returns true if the caller must read the Node's status: a volume has been unused for long enough to count as
  // leaked, but the status was last read before that time.
  bool asks_for_node(TimePoint now) const;
  // Stores what the Node's status says. `attachments` has the names of the VolumeAttachments whose volumes the status
  // lists as in use or attached; it was requested at `asked`. From then on the drain waits for these volumes, even if a
  // later status does not list them, because Kubernetes removes a volume from the status before it is detached.
  void node_holds(const std::set<std::string>& attachments, TimePoint asked);
  // Decides the outcome of every volume, and emits what has changed.
  void look(const ClaimUse& use, TimePoint now, WallTime wall);

  // True if nothing is attached.
  bool empty() const { return entries_.empty(); }
  // Calls visit(const VolumeReport&, bool is_stuck) for each attached volume, as of the last look().
  template <class Visit>
  void each_attached(TimePoint now, Visit visit) const {
    for (const auto& [uid, entry] : entries_) visit(entry.report, is_stuck(entry, now));
  }
  // Calls visit(const VolumeReport&) for each detached volume for which the drain waits until another node has it, as
  // of the last look().
  template <class Visit>
  void each_reattaching(Visit visit) const {
    for (const Detached& volume : detached_)
      if (volume.report.reattach == Reattach::waiting) visit(volume.report);
  }
  bool any_reattaching() const;
  // True if the drain need not wait for any volume on this node, as of the last look().
  bool all_detached() const;
  // Returns the earliest time from which the drain has been waiting for a volume; max() if it waits for none.
  TimePoint waiting_since() const;
  // Returns a message if the drain has waited for a volume for longer than the limit.
  std::optional<std::string> past_limit(TimePoint now) const;
  // Returns a text that lists the volumes for which the drain still waits; empty if there are none.
  std::string waiting_for() const;
  // Returns the next time after `now` at which an outcome can change without an event; max() if never.
  TimePoint next_wake(TimePoint now) const;
  std::size_t count(VolumeOutcome outcome) const;
  void diagnose(TimePoint now, std::vector<DiagnosisFact>& facts) const;
  // Returns the reports of all attached and detached volumes, sorted by the name of the PersistentVolume.
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
  // Attachments to other nodes. The key is the name of the PersistentVolume and the UID of the VolumeAttachment.
  using Others = std::map<std::pair<std::string, std::string>, Other>;
  void come_back(const std::string& uid, const std::string& attachment);
  void other_changed(const std::string& uid, const k8s::VolumeAttachment* attachment);
  // Returns the attachment of this volume to another node, an attached one if there is one; nullptr if there is none.
  const Other* elsewhere(const std::string& volume) const;
  ReattachFacts facts_of(const Detached& volume, const ClaimUse& use, TimePoint now) const;
  static std::string say_reattach(const VolumeReport& report, const ReattachFacts& facts, const Other* other);
  void look_elsewhere(const ClaimUse& use, TimePoint now);
  // Returns the time from which the volume counts as leaked. Does not consider the Node's status; the caller must.
  // Returns max() while a pod uses the volume or its claim is unknown.
  static TimePoint leaks_at(const Entry& entry);
  VolumeOutcome judge(const Entry& entry, const ClaimUse& use, TimePoint now) const;
  bool is_stuck(const Entry& entry, TimePoint now) const;

  std::string node_;
  Duration limit_;
  Duration reattach_limit_;
  TimePoint reattach_until_ = TimePoint::max();
  Emit emit_;
  bool expect_all_ = false;
  std::map<std::string, Entry> entries_;       // attached volumes; the key is the UID of the VolumeAttachment
  std::set<std::string> leaked_;               // UIDs of VolumeAttachments that count as leaked
  std::map<std::string, TimePoint> gone_;      // times of deletion by UID; later events of such a UID are repetitions
  std::map<std::string, std::string> claims_;  // maps the name of a PersistentVolume to its claim
  std::set<std::string> left_;                 // claims of pods that were deleted or had to leave; never removed
  std::set<std::string> held_;  // names of VolumeAttachments that the Node's status has named so far; never removed
  TimePoint node_asked_ = TimePoint::min();
  std::vector<Detached> detached_;
  Others others_;                                    // stays empty if reattach_limit_ is 0
  std::map<std::string, std::string> other_volume_;  // maps the UID of a VolumeAttachment to its PersistentVolume
  TimePoint reattach_wake_ = TimePoint::max();       // next time at which a wait for another node can change
};

}  // namespace haulout::drain
