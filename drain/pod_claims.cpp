#include "drain/pod_claims.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "k8s/status.hpp"

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

constexpr const char* hostname_label = "kubernetes.io/hostname";

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
    // The claims of a finished pod that stays count as left, because the kubelet unmounts its volumes.
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

std::string hostname_of(const k8s::Node& node) {
  const auto label = node.labels.find(hostname_label);
  return label == node.labels.end() ? node.name : label->second;
}

bool is_only_on(const k8s::PersistentVolume& volume, const std::string& hostname) {
  return !volume.hostnames.empty() && std::all_of(volume.hostnames.begin(), volume.hostnames.end(),
                                                  [&](const std::string& one) { return one == hostname; });
}

Task<std::optional<std::string>> local_volume_of(k8s::Client& client, k8s::Pod pod, std::string hostname,
                                                 std::function<TimePoint()> deadline) {
  for (const std::string& name : pod.claims) {
    const auto claim = co_await client.get<k8s::PersistentVolumeClaim>(pod.ns, name, deadline());
    if (!claim && !k8s::is_gone(claim.error())) co_return claim.error();
    if (!claim || claim->volume_name.empty()) continue;
    const auto volume = co_await client.get<k8s::PersistentVolume>(claim->volume_name, deadline());
    if (!volume && !k8s::is_gone(volume.error())) co_return volume.error();
    if (!volume || !is_only_on(*volume, hostname)) continue;
    co_return std::optional(
        fmt::format("its volume {} (claim {}/{}) exists only on this node{}", volume->name, pod.ns, name,
                    pod.controller ? ": after the eviction, a replacement of the pod stays Pending while the node is "
                                     "cordoned. Let the owner move the data first, or accept the outage"
                                   : ", and nothing creates the pod again, because it has no controller. Let the owner "
                                     "move the data first, or create the pod again when the node is uncordoned"));
  }
  co_return std::optional<std::string>();
}

}  // namespace haulout::drain
