#include "drain/claim_use.hpp"

#include <algorithm>

namespace haulout::drain {

namespace {

// Adds the claims that a replacement of this pod will use again. A finished pod gets no replacement. Claims that the
// pod owns (ephemeral volumes) are deleted with it.
void add_what_comes_back(const TrackedPod& tracked, std::set<std::string>& claims) {
  const k8s::Pod& pod = tracked.pod;
  if (!pod.controller || tracked.had_finished) return;
  for (const std::string& claim : pod.claims)
    if (std::find(pod.own_claims.begin(), pod.own_claims.end(), claim) == pod.own_claims.end())
      claims.insert(pod.ns + "/" + claim);
}

}  // namespace

bool may_be_of_an_earlier_claim(const k8s::PersistentVolume& volume) {
  return !volume.phase.empty() && volume.phase != "Bound";
}

bool is_volume_of(const k8s::PersistentVolume& volume, const k8s::PersistentVolumeClaim& claim) {
  if (!claim.volume_name.empty()) return claim.volume_name == volume.name;
  return volume.claim_uid.empty() || claim.uid.empty() || volume.claim_uid == claim.uid;
}

ClaimUse claim_use(const std::map<std::string, TrackedPod>& pods) {
  ClaimUse use;
  for (const auto& [uid, tracked] : pods) {
    const bool gone = tracked.state == PodState::vanished;
    const bool stays = tracked.state == PodState::left;
    // The kubelet unmounts the volumes of a finished pod.
    auto& claims = gone || (stays && tracked.pod.finished()) ? use.left : stays ? use.staying : use.leaving;
    for (const std::string& claim : tracked.pod.claims) claims.insert(tracked.pod.ns + "/" + claim);
    if (!stays) add_what_comes_back(tracked, use.coming_back);
  }
  return use;
}

bool any_claim_leaves(const std::map<std::string, TrackedPod>& pods) {
  return std::any_of(pods.begin(), pods.end(), [](const auto& entry) {
    return entry.second.state != PodState::left && !entry.second.pod.claims.empty();
  });
}

}  // namespace haulout::drain
