// VolumeBook: the attachments to other nodes of volumes that were detached here.
#include <fmt/format.h>

#include <algorithm>

#include "drain/volumes.hpp"

namespace haulout::drain {

namespace {

using Elsewhere = ReattachFacts::Elsewhere;

std::string seconds_of(Duration duration) {
  return fmt::format("{} s", std::chrono::duration_cast<std::chrono::seconds>(duration).count());
}

}  // namespace

void VolumeBook::other_changed(const std::string& uid, const k8s::VolumeAttachment* attachment) {
  if (reattach_limit_ == Duration::zero()) return;
  if (attachment && !attachment->deleting() && !attachment->persistent_volume.empty()) {
    other_volume_[uid] = attachment->persistent_volume;
    others_[{attachment->persistent_volume, uid}] = {attachment->node_name, attachment->attached,
                                                     attachment->attach_error};
    return;
  }
  const auto found = other_volume_.find(uid);
  if (found == other_volume_.end()) return;
  others_.erase({found->second, uid});
  other_volume_.erase(found);
}

const VolumeBook::Other* VolumeBook::elsewhere(const std::string& volume) const {
  const Other* furthest = nullptr;
  for (auto other = others_.lower_bound({volume, {}}); other != others_.end() && other->first.first == volume; ++other)
    if (!furthest || (other->second.attached && !furthest->attached)) furthest = &other->second;
  return furthest;
}

ReattachFacts VolumeBook::facts_of(const Detached& volume, const ClaimUse& use, TimePoint now) const {
  const std::string& claim = volume.report.claim;
  const Other* other = elsewhere(volume.report.volume);
  const bool attached_here = std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry.second.report.volume == volume.report.volume;
  });
  ReattachFacts facts;
  facts.comes_back = use.coming_back.contains(claim);
  facts.used_here = attached_here || use.staying.contains(claim) || use.leaving.contains(claim);
  facts.elsewhere = !other ? Elsewhere::nowhere : other->attached ? Elsewhere::attached : Elsewhere::attaching;
  facts.now = now;
  facts.detached_at = volume.at;
  facts.limit = reattach_limit_;
  facts.until = reattach_until_;
  return facts;
}

bool VolumeBook::any_reattaching() const {
  return std::any_of(detached_.begin(), detached_.end(),
                     [](const Detached& volume) { return volume.report.reattach == Reattach::waiting; });
}

void VolumeBook::look_elsewhere(const ClaimUse& use, TimePoint now) {
  reattach_wake_ = TimePoint::max();
  for (Detached& volume : detached_) {
    VolumeReport& report = volume.report;
    if (report.reattach == Reattach::none || report.reattach == Reattach::attached) continue;
    const ReattachFacts facts = facts_of(volume, use, now);
    const Reattach before = std::exchange(report.reattach, decide_reattach(report.reattach, facts));
    reattach_wake_ = std::min(reattach_wake_, reattach_wake(report.reattach, facts));
    if (report.reattach == before && before != Reattach::waiting) continue;
    const Other* other = elsewhere(report.volume);
    report.attached_to = report.reattach == Reattach::attached ? other->node : std::string();
    std::string message = say_reattach(report, facts, other);
    const bool news = report.reattach != before || report.message != message;
    report.message = std::move(message);
    // If no controller replaces the pod, nothing has changed for the volume.
    if (news && report.reattach != Reattach::none) emit_(EventType::volume_reattach, report);
  }
}

std::string VolumeBook::say_reattach(const VolumeReport& report, const ReattachFacts& facts, const Other* other) {
  const std::string doing =
      !other ? "no other node needs it"
      : other->error.empty()
          ? fmt::format("{} is attaching it to node {}", report.driver, other->node)
          : fmt::format("{} cannot attach it to node {}: {}", report.driver, other->node, other->error);
  switch (report.reattach) {
    case Reattach::none:
    case Reattach::attached: return {};
    case Reattach::waiting: return other ? doing : "no other node has requested it yet";
    case Reattach::unclaimed:
      return facts.used_here ? "a pod of this node uses it again"
                             : fmt::format(
                                   "no other node has requested it within {} after it was detached: was its pod scaled "
                                   "down, or can it not be scheduled?",
                                   seconds_of(claim_hold));
    case Reattach::late: break;
  }
  return fmt::format(
      "no other node has attached it {} after it was detached here{}: {}; the drain continues. Use kubectl describe on "
      "the pod with claim {} to see what it waits for, or raise --reattach-limit if this storage takes longer",
      seconds_of(facts.now - facts.detached_at),
      facts.now >= facts.until ? ", and the drain has no more time to wait" : "", doing, report.claim);
}

}  // namespace haulout::drain
