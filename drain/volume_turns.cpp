#include "drain/volume_turns.hpp"

#include <fmt/format.h>

#include "drain/reasons.hpp"

namespace haulout::drain {

VolumeTurns::Leaver VolumeTurns::leaver_of(const k8s::Pod& pod) {
  Leaver leaver{pod.key(), {}};
  for (const std::string& claim : pod.claims) leaver.claims.insert(pod.ns + "/" + claim);
  return leaver;
}

void VolumeTurns::look(const std::map<std::string, TrackedPod>& pods, TimePoint now) {
  stopped_ = false;
  leavers_.clear();
  told_.clear();
  last_in_line_.clear();
  for (const auto& [uid, tracked] : pods) {
    const bool leaves = tracked.state == PodState::in_flight || tracked.state == PodState::terminating;
    if (leaves && !tracked.stuck && !tracked.pod.claims.empty()) leavers_.emplace(uid, leaver_of(tracked.pod));
  }
  if (volumes_.unresolved().empty())
    unresolved_since_.reset();
  else if (!unresolved_since_)
    unresolved_since_ = now;
}

void VolumeTurns::stop() {
  stopped_ = true;
  leavers_.clear();
}

// Other pods wait only for a pod with `Leaves::yes`. After `Leaves::perhaps` (the answer to the eviction was lost) the
// eviction is sent again; if the pod was deleted, its watch event arrives soon.
void VolumeTurns::leaving(const k8s::Pod& pod, Leaves leaves) {
  if (pod.claims.empty()) return;
  if (leaves == Leaves::yes)
    leavers_.try_emplace(pod.uid, leaver_of(pod));
  else
    leavers_.erase(pod.uid);
}

// Returns the CSI drivers of the pod's attached volumes. Leaves out volumes that a skipped pod uses as well, since they
// are not detached when this pod is deleted.
std::set<std::string> VolumeTurns::drivers_of(const Leaver& pod, TimePoint now) const {
  std::set<std::string> drivers;
  volumes_.each_attached(now, [&](const VolumeReport& volume, bool) {
    if (pod.claims.contains(volume.claim) && volume.outcome != VolumeOutcome::kept) drivers.insert(volume.driver);
  });
  return drivers;
}

std::string VolumeTurns::holder_of(const std::string& driver, const std::string& uid, TimePoint now) const {
  for (const auto& [other, leaver] : leavers_)
    if (other != uid && drivers_of(leaver, now).contains(driver)) return fmt::format("pod {} goes first", leaver.key);
  std::string holder;
  volumes_.each_attached(now, [&](const VolumeReport& volume, bool is_stuck) {
    if (volume.driver == driver && volume.outcome == VolumeOutcome::detaching && !is_stuck && holder.empty())
      holder = fmt::format("PersistentVolume {} of the previous pod is not detached yet", volume.volume);
  });
  volumes_.detached().each_waited_for([&](const VolumeReport& volume) {
    if (volume.driver == driver && holder.empty())
      holder =
          fmt::format("PersistentVolume {} of the previous pod is not attached to another node yet (--reattach-limit)",
                      volume.volume);
  });
  return holder;
}

bool VolumeTurns::knows_all_volumes_of(const Leaver& pod, TimePoint now) const {
  if (!unresolved_since_) return true;
  std::set<std::string> unknown = pod.claims;
  volumes_.each_attached(now, [&](const VolumeReport& volume, bool) { unknown.erase(volume.claim); });
  return unknown.empty();
}

std::optional<EvictionGuard::Hold> VolumeTurns::held(const k8s::Pod& pod, TimePoint now) {
  if (stopped_ || pod.claims.empty()) return std::nullopt;
  const Leaver leaver = leaver_of(pod);
  if (!knows_all_volumes_of(leaver, now) && now < *unresolved_since_ + patience)
    return Hold{reason::volumes_in_turn,
                "waiting until it is known which of the node's volumes the pod uses (--serialize-volumes)",
                *unresolved_since_ + patience};
  for (const std::string& driver : drivers_of(leaver, now)) {
    const std::string holder = holder_of(driver, pod.uid, now);
    if (holder.empty()) continue;
    const auto [told, is_new] = told_.try_emplace(pod.uid, holder);
    std::string& last = last_in_line_[driver];
    if (is_new && !last.empty()) told->second = last;
    if (is_new) last = fmt::format("pod {} goes first", leaver.key);
    return Hold{
        reason::volumes_in_turn,
        fmt::format("waiting because pods with volumes of {} are evicted one at a time (--serialize-volumes): {}",
                    driver, told->second)};
  }
  return std::nullopt;
}

}  // namespace haulout::drain
