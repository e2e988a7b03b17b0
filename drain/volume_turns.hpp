// Lets pods whose volumes belong to the same CSI driver leave one at a time (--serialize-volumes). The next pod is
// evicted when the previous one was deleted and its volumes are detached. This is for storage that attaches and
// detaches slowly, or one volume after the other. Pure.
//
// With a reattach limit, the next pod also waits until another node has the volumes, or until the drain stops waiting
// for that.
//
// This paces the drain; success does not depend on it. A pod is not held by
//   - a pod that is only parked (P9), or that still exists a minute after its grace period;
//   - a volume that is past its limit, leaked, or kept by a pod that stays;
//   - a request about a volume that has had no answer for `patience`.
// A pod without claims is never held. A pod whose claims need no attached volume is held only while it is unknown which
// claims the attached volumes belong to, for at most `patience`.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "drain/eviction_guard.hpp"
#include "drain/volumes.hpp"

namespace haulout::drain {

class VolumeTurns final : public EvictionGuard {
 public:
  // How long a pod with claims waits until it is known which of the attached volumes belong to them.
  static constexpr Duration patience = std::chrono::seconds(30);

  // Borrows `volumes`. Call look() after each `VolumeBook::look`: until then, a deleted pod still holds back the next.
  explicit VolumeTurns(const VolumeBook& volumes) : volumes_(volumes) {}
  void look(const std::map<std::string, TrackedPod>& pods, TimePoint now);
  // The drain may not read volumes: holds no pod any more.
  void stop();

  std::optional<Hold> held(const k8s::Pod& pod, TimePoint now) override;
  void leaving(const k8s::Pod& pod, Leaves leaves) override;

 private:
  struct Leaver {
    std::string key;
    std::set<std::string> claims;  // "namespace/name"
  };
  static Leaver leaver_of(const k8s::Pod& pod);
  std::set<std::string> drivers_of(const Leaver& pod, TimePoint now) const;
  // Describes the pod or the volume that other pods of this driver have to wait for; empty if there is none. Ignores
  // the pod with this UID.
  std::string holder_of(const std::string& driver, const std::string& uid, TimePoint now) const;
  bool knows_all_volumes_of(const Leaver& pod, TimePoint now) const;

  const VolumeBook& volumes_;
  bool stopped_ = false;
  std::map<std::string, Leaver> leavers_;  // leaving pods that have claims, by UID
  std::optional<TimePoint> unresolved_since_;
  // Filled since the last look(): what each held pod waits for, by its UID, and the last pod that is held for each
  // driver. So a pod's message names the pod before it in line, and does not change each time that another pod leaves.
  std::map<std::string, std::string> told_;
  std::map<std::string, std::string> last_in_line_;
};

}  // namespace haulout::drain
