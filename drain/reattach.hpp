// Decides whether a drain waits until a volume that was detached from this node is attached to another node. Pure.
//
// The wait only slows the drain down, for storage that attaches slowly: the next pod is evicted later. No outcome of a
// drain may depend on it, because the drain cannot cause the attachment: the replacement may be unschedulable, its
// controller may have been scaled down, or the drain may just have evicted the scheduler.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "drain/observer.hpp"
#include "drain/pod_claims.hpp"
#include "drain/report.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

// Kubernetes creates the VolumeAttachment of a replacement pod as soon as the pod has a node. If there is none this
// long after the volume was detached, the drain stops waiting for the volume.
inline constexpr Duration claim_hold = std::chrono::seconds(30);
// The waits end this long before the deadline of the drain, so that its final requests can be answered in time.
inline constexpr Duration reattach_margin = std::chrono::seconds(30);

// Input of decide_reattach(): what is known about one detached volume.
struct ReattachFacts {
  enum class Elsewhere { nowhere, attaching, attached };  // most advanced state on any other node

  // A replacement pod will use the volume: the pod that used it has a controller and had not finished, and its claim is
  // not deleted with it.
  bool comes_back = false;
  bool used_here = false;  // a pod of this node uses its claim, or the volume is attached here again
  Elsewhere elsewhere = Elsewhere::nowhere;
  TimePoint now{};
  TimePoint detached_at{};
  Duration limit{};                    // longest wait since `detached_at`; 0 disables the wait
  TimePoint until = TimePoint::max();  // latest end of all waits of this drain
};

// Returns the next state of the wait. A wait that has ended does not start again: only `attached` can follow
// `unclaimed` and `late`.
Reattach decide_reattach(Reattach before, const ReattachFacts& facts);
// Returns the time at which that state can change without an event; max() if never.
TimePoint reattach_wake(Reattach now, const ReattachFacts& facts);

// The volumes that were detached from this node during the drain, and the attachments of volumes to other nodes.
class DetachedVolumes {
 public:
  using Emit = std::function<void(EventType, const VolumeReport&)>;

  // `limit`: how long another node may take to attach a volume. If it is 0, VolumeAttachments of other nodes are
  // ignored.
  DetachedVolumes(Duration limit, Emit emit) : limit_(limit), emit_(std::move(emit)) {}
  // Sets the time at which all waits end.
  void end_waits_at(TimePoint until) { until_ = until; }

  // Records a VolumeAttachment of another node; nullptr: it was deleted.
  void attachment_changed(const std::string& uid, const k8s::VolumeAttachment* attachment);
  // Returns true if this VolumeAttachment is of another node.
  bool knows(const std::string& uid) const { return other_volume_.contains(uid); }

  // Adds a volume whose VolumeAttachment was deleted.
  void add(VolumeReport report, TimePoint now);
  // Removes the volume of this VolumeAttachment, because it turned out not to be detached.
  void remove(const std::string& attachment);
  // Decides for each volume whether the drain waits until another node has attached it, and emits the changes.
  // `attached_here` says whether a PersistentVolume is attached to this node.
  void look(const ClaimUse& use, const std::function<bool(const std::string&)>& attached_here, TimePoint now);

  // Calls visit(const VolumeReport&) for each volume for which the drain waits until another node has attached it.
  template <class Visit>
  void each_waited_for(Visit visit) const {
    for (const Detached& volume : detached_)
      if (volume.report.reattach == Reattach::waiting) visit(volume.report);
  }
  bool any_waited_for() const;
  // Returns the next time after `now` at which a wait can change without an event; max() if never.
  TimePoint next_wake(TimePoint now) const { return wake_ > now ? wake_ : TimePoint::max(); }
  std::size_t size() const { return detached_.size(); }
  std::vector<VolumeReport> reports() const;

 private:
  struct Detached {
    VolumeReport report;
    TimePoint at;
  };
  struct Other {
    std::string node;
    bool attached = false;
    std::string error;
  };
  // Returns the attachment of this volume to another node, an attached one if there is one; nullptr if there is none.
  const Other* elsewhere(const std::string& volume) const;
  ReattachFacts facts_of(const Detached& volume, const ClaimUse& use, bool attached_here, TimePoint now) const;
  static std::string say(const VolumeReport& report, const ReattachFacts& facts, const Other* other);

  Duration limit_;
  TimePoint until_ = TimePoint::max();
  Emit emit_;
  std::vector<Detached> detached_;
  // Attachments to other nodes. The key is the name of the PersistentVolume and the UID of the VolumeAttachment.
  std::map<std::pair<std::string, std::string>, Other> others_;
  std::map<std::string, std::string> other_volume_;  // maps the UID of a VolumeAttachment to its PersistentVolume
  TimePoint wake_ = TimePoint::max();                // next time at which a wait can change
};

}  // namespace haulout::drain
