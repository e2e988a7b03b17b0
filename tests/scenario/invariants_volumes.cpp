// The invariants about volumes: --serialize-volumes during the drain, and detached volumes at its end.
#include <fmt/format.h>

#include <algorithm>

#include "drain/session.hpp"
#include "tests/scenario/invariants.hpp"

namespace haulout::scenario {

using namespace std::chrono_literals;

namespace {

bool shares_claim(const k8s::Pod& a, const k8s::Pod& b) {
  return a.ns == b.ns && std::any_of(a.claims.begin(), a.claims.end(), [&](const auto& claim) {
           return std::find(b.claims.begin(), b.claims.end(), claim) != b.claims.end();
         });
}

}  // namespace

// Returns the CSI drivers of the volumes that the pod mounts and that were attached before the drain began.
std::set<std::string> Invariants::drivers_of(const Instance& pod) const {
  std::set<std::string> drivers;
  for (const sim::Json& attachment : cluster_.all("volumeattachments")) {
    const auto since = attached_since_.find(sim::uid_of(attachment));
    if (sim::text(attachment, "/spec/nodeName") != given_.node) continue;
    if (since == attached_since_.end() || since->second >= began_) continue;
    const sim::Json volume =
        cluster_.get("persistentvolumes", "", sim::text(attachment, "/spec/source/persistentVolumeName"));
    const auto& claims = pod.pod.claims;
    const bool mounted =
        sim::text(volume, "/spec/claimRef/namespace") == pod.pod.ns &&
        std::find(claims.begin(), claims.end(), sim::text(volume, "/spec/claimRef/name")) != claims.end();
    if (mounted) drivers.insert(sim::text(attachment, "/spec/attacher"));
  }
  return drivers;
}

// True if a pod that stays on the node uses one of this pod's claims. The volume then stays attached after this pod is
// deleted.
bool Invariants::shares_with_one_that_stays(const Instance& pod) const {
  return std::any_of(pods_.begin(), pods_.end(), [&](const auto& entry) {
    const Instance& other = entry.second;
    const bool there = !other.gone || clock_.now() - *other.gone <= news_takes;
    const bool stays = verdict(other) == drain::Verdict::skip || told_left_.contains(entry.first);
    return on_our_node(other) && there && stays && shares_claim(pod.pod, other.pod);
  });
}

// No two pods with volumes of one driver terminate at the same time, and no volume of that driver is being detached
// when the next pod is evicted. Checks only pods that existed when the drain began, because the drain may see later
// pods too late.
void Invariants::check_turns(const Instance& pod) {
  const TimePoint now = clock_.now();
  if (pod.bound > began_ || pod.gone || pod.terminating) return;
  const std::set<std::string> drivers = drivers_of(pod);
  if (drivers.empty() || shares_with_one_that_stays(pod)) return;
  const auto shares_driver = [&](const Instance& other) {
    const std::set<std::string> others = drivers_of(other);
    return std::any_of(others.begin(), others.end(), [&](const auto& driver) { return drivers.contains(driver); });
  };
  // After the volume limit, the volumes of a deleted pod count as stuck and hold up no other pod.
  const Duration limit = given_.options.volume_limit;
  const Duration long_detached = limit == Duration::zero() ? Duration::max() : limit - 10s;
  for (const auto& [uid, other] : pods_) {
    if (&other == &pod || !on_our_node(other) || other.bound > began_) continue;
    const bool leaves = !other.gone && now < other.place_until &&
                        (other.in_flight > 0 || (other.terminating && now - *other.terminating > news_takes));
    const bool left =
        other.gone && *other.gone >= began_ && now - *other.gone > news_takes && now - *other.gone < long_detached;
    if ((!leaves && !left) || !shares_driver(other) || verdict(other) == drain::Verdict::skip) continue;
    if (shares_with_one_that_stays(other)) continue;
    // A volume that other pods on the node still mount is not detached.
    const bool shared = std::any_of(pods_.begin(), pods_.end(), [&](const auto& entry) {
      return on_our_node(entry.second) && !entry.second.gone && shares_claim(other.pod, entry.second.pod);
    });
    if (leaves || !shared)
      violated(fmt::format("turns: {} evicted before {} is out and its volumes detached", pod.key, other.key));
  }
}

std::optional<TimePoint> Invariants::unused_since(const std::string& volume_name) const {
  const sim::Json volume = cluster_.get("persistentvolumes", "", volume_name);
  const std::string ns = sim::text(volume, "/spec/claimRef/namespace");
  const std::string claim = sim::text(volume, "/spec/claimRef/name");
  std::optional<TimePoint> left;
  for (const auto& [uid, pod] : pods_) {
    const auto& claims = pod.pod.claims;
    if (!on_our_node(pod) || pod.pod.ns != ns || std::find(claims.begin(), claims.end(), claim) == claims.end())
      continue;
    // The drain does not wait for the volumes of a pod that it leaves on purpose.
    if (!pod.gone || told_left_.contains(uid)) return std::nullopt;
    if (*pod.gone >= began_) left = std::max(left.value_or(*pod.gone), *pod.gone);
  }
  return left;
}

std::set<std::string> Invariants::volumes_attached() const {
  std::set<std::string> found;
  for (const sim::Json& attachment : cluster_.all("volumeattachments"))
    if (sim::text(attachment, "/spec/nodeName") == given_.node)
      found.insert(sim::text(attachment, "/spec/source/persistentVolumeName"));
  return found;
}

void Invariants::check_volumes() {
  if (given_.options.volumes == drain::VolumeWait::off) return;
  // The drain accepts after two refusals that it may not read volumes.
  if (given_.options.volumes == drain::VolumeWait::if_permitted && volume_refusals_ >= 2) return;
  for (const std::string& name : volumes_attached())
    if (unused_since(name)) violated("P3: drained, but this volume is attached: " + name);
}

// True if the options end the drain at the volume limit, and a volume has reached it. The tolerance covers the delay of
// the drain's watch.
bool Invariants::ended_by_volume() const {
  const Duration limit = given_.options.volume_limit;
  if (!given_.options.end_at_volume_limit || limit == Duration::zero()) return false;
  std::set<std::string> attached = volumes_attached();
  // The drain's last list may be older than a detach within the last second. After it has given up, it cleans up for as
  // long as a request may take.
  const Duration since_list = given_.sound_wire ? news_takes : news_takes + drain::request_timeout;
  for (const auto& [name, at] : detached_)
    if (clock_.now() - at <= since_list) attached.insert(name);
  // A restored backup may have brought a pod back for a while without a watch event.
  if (given_.etcd_restored) return !attached.empty();
  return std::any_of(attached.begin(), attached.end(), [&](const std::string& name) {
    const auto since = unused_since(name);
    return since && clock_.now() - *since >= limit - news_takes;
  });
}

}  // namespace haulout::scenario
