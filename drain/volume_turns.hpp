// Pods whose volumes belong to one CSI driver leave one at a time: the next is evicted when the one before has vanished
// and its volumes are detached. For back ends that attach and detach slowly, or one by one. Pure.
//
// With a reattach limit the turn lasts until another node has the volumes, or until they are not waited for any more.
//
// It is pacing, not a gate. Nobody is held by a pod that is merely parked (P9), or is still there a minute after its
// grace period; by a volume that is past its limit, leaked, or kept by a pod that stays; or by a question that finds no
// answer for `patience`. Pods without volumes that are attached through a driver are never held.
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
  // How long a pod with claims waits to hear which of the volumes of the node are its own.
  static constexpr Duration patience = std::chrono::seconds(30);

  // `volumes` is borrowed. `look` goes after each look of theirs: until then a pod that has vanished keeps its turn.
  explicit VolumeTurns(const VolumeBook& volumes) : volumes_(volumes) {}
  void look(const std::map<std::string, TrackedPod>& pods, TimePoint now);
  // Volumes cannot be seen: nobody is held any more.
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
  // Who or what has the turn of this driver, in words; empty: nobody but, perhaps, that pod.
  std::string holder_of(const std::string& driver, const std::string& uid, TimePoint now) const;
  bool knows_all_volumes_of(const Leaver& pod, TimePoint now) const;

  const VolumeBook& volumes_;
  bool stopped_ = false;
  std::map<std::string, Leaver> leavers_;  // with claims; by UID
  std::optional<TimePoint> unresolved_since_;
  // Of the pods that were held since the last look, so that each is told of the one before it and not each of every
  // turn: whom a pod waits for, by its UID, and the last in the line of each driver.
  std::map<std::string, std::string> told_;
  std::map<std::string, std::string> last_in_line_;
};

}  // namespace haulout::drain
