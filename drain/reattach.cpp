#include "drain/reattach.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace haulout::drain {

namespace {

using Elsewhere = ReattachFacts::Elsewhere;

TimePoint end_of(const ReattachFacts& facts) {
  return std::min(saturating_add(facts.detached_at, facts.limit), facts.until);
}

std::string seconds_of(Duration duration) {
  return fmt::format("{} s", std::chrono::duration_cast<std::chrono::seconds>(duration).count());
}

}  // namespace

Reattach decide_reattach(Reattach before, const ReattachFacts& facts) {
  if (before == Reattach::none || facts.limit == Duration::zero()) return Reattach::none;
  if (facts.elsewhere == Elsewhere::attached) return Reattach::attached;
  if (before != Reattach::waiting) return before;
  if (!facts.comes_back) return Reattach::none;
  if (facts.used_here) return Reattach::unclaimed;
  if (facts.now >= end_of(facts)) return Reattach::late;
  const bool unclaimed = facts.elsewhere == Elsewhere::nowhere && facts.now >= facts.detached_at + claim_hold;
  return unclaimed ? Reattach::unclaimed : Reattach::waiting;
}

TimePoint reattach_wake(Reattach now, const ReattachFacts& facts) {
  if (now != Reattach::waiting) return TimePoint::max();
  const TimePoint hold = facts.detached_at + claim_hold;
  return facts.now < hold ? std::min(hold, end_of(facts)) : end_of(facts);
}

void DetachedVolumes::attachment_changed(const std::string& uid, const k8s::VolumeAttachment* attachment) {
  if (limit_ == Duration::zero()) return;
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

void DetachedVolumes::add(VolumeReport report, TimePoint now) {
  // The drain waits only for a volume with a known claim: otherwise it is unknown which pod would use it on another
  // node.
  if (limit_ > Duration::zero() && !report.claim.empty()) report.reattach = Reattach::waiting;
  detached_.push_back({std::move(report), now});
  emit_(EventType::volume_detached, detached_.back().report);
}

void DetachedVolumes::remove(const std::string& attachment) {
  std::erase_if(detached_, [&](const Detached& one) { return one.report.attachment == attachment; });
}

std::vector<VolumeReport> DetachedVolumes::reports() const {
  std::vector<VolumeReport> reports;
  reports.reserve(detached_.size());
  for (const Detached& volume : detached_) reports.push_back(volume.report);
  return reports;
}

const DetachedVolumes::Other* DetachedVolumes::elsewhere(const std::string& volume) const {
  const Other* furthest = nullptr;
  for (auto other = others_.lower_bound({volume, {}}); other != others_.end() && other->first.first == volume; ++other)
    if (!furthest || (other->second.attached && !furthest->attached)) furthest = &other->second;
  return furthest;
}

ReattachFacts DetachedVolumes::facts_of(const Detached& volume, const ClaimUse& use, bool attached_here,
                                        TimePoint now) const {
  const std::string& claim = volume.report.claim;
  const Other* other = elsewhere(volume.report.volume);
  ReattachFacts facts;
  facts.comes_back = use.coming_back.contains(claim);
  facts.used_here = attached_here || use.staying.contains(claim) || use.leaving.contains(claim);
  facts.elsewhere = !other ? Elsewhere::nowhere : other->attached ? Elsewhere::attached : Elsewhere::attaching;
  facts.now = now;
  facts.detached_at = volume.at;
  facts.limit = limit_;
  facts.until = until_;
  return facts;
}

bool DetachedVolumes::any_waited_for() const {
  return std::any_of(detached_.begin(), detached_.end(),
                     [](const Detached& volume) { return volume.report.reattach == Reattach::waiting; });
}

void DetachedVolumes::look(const ClaimUse& use, const std::function<bool(const std::string&)>& attached_here,
                           TimePoint now) {
  if (limit_ == Duration::zero()) return;
  wake_ = TimePoint::max();
  for (Detached& volume : detached_) {
    VolumeReport& report = volume.report;
    if (report.reattach == Reattach::none || report.reattach == Reattach::attached) continue;
    const ReattachFacts facts = facts_of(volume, use, attached_here(report.volume), now);
    const Reattach before = std::exchange(report.reattach, decide_reattach(report.reattach, facts));
    wake_ = std::min(wake_, reattach_wake(report.reattach, facts));
    if (report.reattach == before && before != Reattach::waiting) continue;
    const Other* other = elsewhere(report.volume);
    report.attached_to = report.reattach == Reattach::attached ? other->node : std::string();
    std::string message = say(report, facts, other);
    const bool news = report.reattach != before || report.message != message;
    report.message = std::move(message);
    // Emits nothing if the wait is over because no controller replaces the pod.
    if (news && report.reattach != Reattach::none) emit_(EventType::volume_reattach, report);
  }
}

std::string DetachedVolumes::say(const VolumeReport& report, const ReattachFacts& facts, const Other* other) {
  const std::string doing =
      !other ? "no other node has requested it"
      : other->error.empty()
          ? fmt::format("{} is attaching it to node {}", report.driver, other->node)
          : fmt::format("{} cannot attach it to node {}: {}", report.driver, other->node, other->error);
  switch (report.reattach) {
    case Reattach::none:
    case Reattach::attached: return {};
    case Reattach::waiting: return other ? doing : "no other node has requested it yet";
    case Reattach::unclaimed:
      return facts.used_here ? "it is attached to this node again, or a pod of this node uses it"
                             : fmt::format(
                                   "no other node has requested it within {} after it was detached; perhaps the "
                                   "controller of its pod was scaled down, or the pod cannot be scheduled",
                                   seconds_of(claim_hold));
    case Reattach::late: break;
  }
  return fmt::format(
      "no other node has attached it {} after it was detached from this node: {}. The drain does not wait any longer. "
      "Use kubectl describe on the pod with claim {} to see what it waits for, or raise {} if this storage takes "
      "longer",
      seconds_of(facts.now - facts.detached_at), doing, report.claim,
      facts.now >= facts.until ? "--timeout (agent: --drain-deadline)" : "--reattach-limit");
}

}  // namespace haulout::drain
