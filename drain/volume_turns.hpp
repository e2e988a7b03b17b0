// The guard that evicts pods whose volumes belong to the same CSI driver one at a time (--serialize-volumes). The next
// pod is evicted when the previous one was deleted and its volumes are detached. This is for storage that attaches and
// detaches slowly, or one volume after the other. Pure.
//
// With a reattach limit, the next pod also waits until another node has attached the volumes, or until the drain stops
// waiting for that.
//
// The guard only slows the drain down; the outcome does not depend on it. So a pod does not wait for
//   - a pod that is only parked (P9 in docs/reliability.md), or that still exists a minute after its grace period;
//   - a volume that is past its limit, leaked, or kept by a pod that stays;
//   - a request about a volume that has had no answer for `patience`.
// A pod without claims never waits. A pod whose claims need no attached volume waits only while it is unknown to which
// claims the attached volumes belong, for at most `patience`.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "drain/guards.hpp"
#include "drain/volumes.hpp"

namespace haulout::drain {

class VolumeTurns final : public EvictionGuard {
 public:
  // How long a pod with claims waits at most until it is known which of the attached volumes belong to them.
  static constexpr Duration patience = std::chrono::seconds(30);

  // Borrows `volumes`. Call look() after each `VolumeBook::look`: until then, other pods still wait for a deleted pod.
  explicit VolumeTurns(const VolumeBook& volumes) : volumes_(volumes) {}
  void look(const std::map<std::string, TrackedPod>& pods, TimePoint now);
  // Until the next look(), no pod waits, because the drain may not read volumes.
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
  std::map<std::string, Leaver> leavers_;  // pods being evicted or terminating that have claims, by UID
  std::optional<TimePoint> unresolved_since_;
  // Filled since the last look(): what each waiting pod waits for, by its UID, and the last waiting pod of each driver.
  // So a pod's message names the waiting pod before it, and does not change each time that another pod is deleted.
  std::map<std::string, std::string> told_;
  std::map<std::string, std::string> last_in_line_;
};

}  // namespace haulout::drain
