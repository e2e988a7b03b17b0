// Records the volumes attached to one node, and decides for which of them the drain waits. The caller reports pods,
// VolumeAttachments and the time; the VolumeBook returns outcomes and diagnoses. Pure.
//
// A volume is detached when its VolumeAttachment was deleted. Nothing else counts, not even that a deadline passed (P4
// in docs/reliability.md). The claim to which its PersistentVolume is bound shows which pods use the volume.
//   - A volume that a skipped pod uses is `kept`. The drain does not wait for it.
//   - A volume that only pods that must leave use is `in_use`. When the last of them was deleted, it is `detaching`,
//     and the drain waits until it is detached. A volume is also `detaching` if no pod uses it any more and Kubernetes
//     has already begun to detach it.
//   - A volume without a PersistentVolume is `inline_volume`. No object says which pods use it, so the drain never
//     waits for it.
//   - A volume is `unclear`, and the drain waits for it, until its claim is known. If the drain has seen no pod of the
//     node use the claim, the volume stays `unclear` until `leak_hold` has passed. Then the Node's status decides: if
//     the status names the volume, its pods were deleted before the drain began, and it is `detaching`; otherwise it is
//     `leaked`, and the drain does not wait for it. expect_all() changes that.
// VolumeAttachments are identified by UID. A change that is reported twice has no effect the second time.
#pragma once

#include <map>
#include <set>

#include "drain/diagnoses.hpp"
#include "drain/observer.hpp"
#include "drain/pod_claims.hpp"
#include "drain/reattach.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

class VolumeBook {
 public:
  using Emit = std::function<void(EventType, const VolumeReport&)>;
  // A volume that no pod uses counts as leaked only after this time. Its last pod may have been deleted just before the
  // drain began: then Kubernetes starts to detach the volume within this time, and the drain waits for it.
  static constexpr Duration leak_hold = std::chrono::seconds(15);

  // `limit`: a volume counts as stuck if it is still attached this long after its last pod was deleted; 0 disables
  // that. `reattach_limit`: how long another node may take to attach a volume that was detached here (reattach.hpp); if
  // it is 0, VolumeAttachments of other nodes are ignored.
  VolumeBook(std::string node, Duration limit, Emit emit, Duration reattach_limit = Duration::zero())
      : node_(std::move(node)), limit_(limit), emit_(emit), detached_(reattach_limit, std::move(emit)) {}

  // The volumes that were detached here, as of the last look().
  DetachedVolumes& detached() { return detached_; }
  const DetachedVolumes& detached() const { return detached_; }

  // For a drain that continues a run of another process: pods that only that process saw may have used the attached
  // volumes. So the drain also waits for volumes that would count as leaked, except those of expect_leaked().
  void expect_all() { expect_all_ = true; }

  // Sets the UIDs of VolumeAttachments that an earlier part of this run found leaked. They count as leaked again, also
  // after expect_all(), until they are being detached, the Node's status names them, or a pod uses them.
  void expect_leaked(std::set<std::string> uids) { leaked_ = std::move(uids); }
  const std::set<std::string>& leaked() const { return leaked_; }

  // Records a change of a VolumeAttachment; nullptr: it was deleted.
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
  // Stores the Node's status. `attachments` has the names of the VolumeAttachments whose volumes the status lists as in
  // use or attached; the status was requested at `asked`. From then on the drain waits for these volumes, even if a
  // later status does not list them, because Kubernetes removes a volume from the status before it is detached.
  void node_holds(const std::set<std::string>& attachments, TimePoint asked);
  // Decides the outcome of every volume, and emits the changes.
  void look(const ClaimUse& use, TimePoint now, WallTime wall);

  // Returns true if no volume is attached.
  bool empty() const { return entries_.empty(); }
  // Calls visit(const VolumeReport&, bool is_stuck) for each attached volume, as of the last look().
  template <class Visit>
  void each_attached(TimePoint now, Visit visit) const {
    for (const auto& [uid, entry] : entries_) visit(entry.report, entry.is_stuck(limit_, now));
  }
  // Returns true if the drain need not wait for any volume on this node, as of the last look().
  bool all_detached() const;
  // Returns the earliest time from which the drain has been waiting for a volume; max() if it waits for none.
  TimePoint waiting_since() const;
  // Returns a message if the drain has waited for a volume for longer than the limit.
  std::optional<std::string> past_limit(TimePoint now) const;
  // Returns a text that lists the volumes that are `detaching` or `unclear`; empty if there are none.
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

    // Returns the time from which the volume counts as leaked. Does not consider the Node's status; the caller must.
    // Returns max() while a pod uses the volume or its claim is unknown.
    TimePoint leaks_at() const { return unused_since ? *unused_since + leak_hold : TimePoint::max(); }
    bool is_stuck(Duration limit, TimePoint now) const;
  };
  // Records that the attachment exists again: a list that was requested after its deletion contains it, because etcd
  // was restored from a backup.
  void come_back(const std::string& uid, const std::string& attachment);
  VolumeOutcome judge(const Entry& entry, const ClaimUse& use, TimePoint now) const;

  std::string node_;
  Duration limit_;
  Emit emit_;
  bool expect_all_ = false;
  std::map<std::string, Entry> entries_;       // attached volumes; the key is the UID of the VolumeAttachment
  std::set<std::string> leaked_;               // UIDs of VolumeAttachments that count as leaked
  std::map<std::string, TimePoint> gone_;      // times of deletion by UID; later events of such a UID are repetitions
  std::map<std::string, std::string> claims_;  // maps the name of a PersistentVolume to its claim
  // Claims of pods that must leave, that were deleted, or that stay but have finished. Never removed.
  std::set<std::string> left_;
  std::set<std::string> held_;  // names of VolumeAttachments that the Node's status has named so far; never removed
  TimePoint node_asked_ = TimePoint::min();
  DetachedVolumes detached_;
};

}  // namespace haulout::drain
