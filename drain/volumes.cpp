#include "drain/volumes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "drain/reasons.hpp"

namespace haulout::drain {

namespace {

// Returns the message of the report while the drain waits for the volume.
std::string progress_of(const k8s::VolumeAttachment& attachment) {
  if (!attachment.detach_error.empty())
    return fmt::format("{} cannot detach it: {}", attachment.attacher, attachment.detach_error);
  if (attachment.deleting()) return fmt::format("{} is detaching it", attachment.attacher);
  return "the kubelet has not unmounted it yet, or kube-controller-manager has not requested its detachment";
}

std::string subject_of(const VolumeReport& report) {
  return "PersistentVolume " + report.volume;
}

}  // namespace

void VolumeBook::attachment_changed(const std::string& uid, const k8s::VolumeAttachment* attachment, TimePoint now,
                                    WallTime wall) {
  if (attachment ? attachment->node_name != node_ : detached_.knows(uid))
    return detached_.attachment_changed(uid, attachment);
  if (attachment) {
    if (gone_.contains(uid)) return;
    Entry& entry = entries_.try_emplace(uid, Entry{{}, {}, now, {}}).first->second;
    entry.attachment = *attachment;
    entry.report.attachment = attachment->name;
    entry.report.volume = attachment->persistent_volume;
    entry.report.driver = attachment->attacher;
    return;
  }
  gone_.insert_or_assign(uid, now);
  leaked_.erase(uid);
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return;
  VolumeReport report = std::move(found->second.report);
  entries_.erase(found);
  const bool waited_for = report.outcome == VolumeOutcome::in_use || report.outcome == VolumeOutcome::detaching ||
                          report.outcome == VolumeOutcome::unclear;
  if (!waited_for) return;
  report.outcome = VolumeOutcome::detached;
  report.message.clear();
  report.detached_at = wall;
  detached_.add(std::move(report), now);
}

void VolumeBook::reconcile(const std::vector<k8s::VolumeAttachment>& listed, TimePoint asked, TimePoint now,
                           WallTime wall) {
  std::set<std::string> missing;
  for (const auto& [uid, entry] : entries_)
    if (entry.seen <= asked) missing.insert(uid);
  for (const auto& attachment : listed) missing.erase(attachment.uid);
  for (const std::string& uid : missing) attachment_changed(uid, nullptr, now, wall);
  // Skips attachments of other nodes, which are reported by the watch: it may be newer than this list.
  for (const auto& attachment : listed) {
    if (attachment.node_name != node_) continue;
    const auto gone = gone_.find(attachment.uid);
    if (gone != gone_.end() && gone->second < asked) come_back(attachment.uid, attachment.name);
    attachment_changed(attachment.uid, &attachment, now, wall);
  }
}

void VolumeBook::come_back(const std::string& uid, const std::string& attachment) {
  gone_.erase(uid);
  detached_.remove(attachment);
}

std::vector<std::string> VolumeBook::unresolved() const {
  std::vector<std::string> unresolved;
  for (const auto& [uid, entry] : entries_)
    if (!entry.report.volume.empty() && !claims_.contains(entry.report.volume))
      unresolved.push_back(entry.report.volume);
  return unresolved;
}

void VolumeBook::resolved(const std::string& volume, std::string claim) {
  claims_[volume] = std::move(claim);
}

bool VolumeBook::asks_for_node(TimePoint now) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
    const TimePoint due = entry.second.leaks_at();
    return entry.second.report.outcome == VolumeOutcome::unclear && now >= due && node_asked_ < due;
  });
}

void VolumeBook::node_holds(const std::set<std::string>& attachments, TimePoint asked) {
  held_.insert(attachments.begin(), attachments.end());
  node_asked_ = asked;
}

VolumeOutcome VolumeBook::judge(const Entry& entry, const ClaimUse& use, TimePoint now) const {
  // No object says which pods use an inline volume.
  if (entry.report.volume.empty()) return VolumeOutcome::inline_volume;
  const auto claim = claims_.find(entry.report.volume);
  if (claim == claims_.end()) return VolumeOutcome::unclear;
  if (use.staying.contains(claim->second)) return VolumeOutcome::kept;
  if (use.leaving.contains(claim->second)) return VolumeOutcome::in_use;
  if (left_.contains(claim->second) || entry.attachment.deleting() || held_.contains(entry.attachment.name))
    return VolumeOutcome::detaching;
  if (leaked_.contains(entry.attachment.uid)) return VolumeOutcome::leaked;
  if (expect_all_) return VolumeOutcome::detaching;
  return std::min(now, node_asked_) >= entry.leaks_at() ? VolumeOutcome::leaked : VolumeOutcome::unclear;
}

void VolumeBook::look(const ClaimUse& use, TimePoint now, WallTime wall) {
  // Stores the claims, because a finished pod may be deleted and forgotten before its volume is detached.
  left_.insert(use.leaving.begin(), use.leaving.end());
  left_.insert(use.left.begin(), use.left.end());
  for (auto& [uid, entry] : entries_) {
    VolumeReport& report = entry.report;
    const auto claim = claims_.find(report.volume);
    if (claim != claims_.end()) report.claim = claim->second;
    const bool used = use.staying.contains(report.claim) || use.leaving.contains(report.claim);
    if (used || claim == claims_.end()) {
      entry.unused_since.reset();
      report.unused_at.reset();
    } else if (!entry.unused_since) {
      entry.unused_since = now;
      report.unused_at = wall;
    }
    const VolumeOutcome outcome = judge(entry, use, now);
    if (outcome == VolumeOutcome::leaked)
      leaked_.insert(uid);
    else if (outcome != VolumeOutcome::unclear)
      leaked_.erase(uid);
    std::string message = outcome == VolumeOutcome::detaching ? progress_of(entry.attachment) : std::string();
    // Also emits an event when the drain stops waiting for the volume.
    const bool news = report.outcome != outcome
                          ? outcome == VolumeOutcome::detaching || report.outcome == VolumeOutcome::detaching
                          : report.message != message;
    report.outcome = outcome;
    report.message = std::move(message);
    if (news) emit_(EventType::volume_waiting, report);
  }
  const auto attached_here = [this](const std::string& volume) {
    return std::any_of(entries_.begin(), entries_.end(),
                       [&](const auto& entry) { return entry.second.report.volume == volume; });
  };
  detached_.look(use, attached_here, now);
}

bool VolumeBook::all_detached() const {
  return count(VolumeOutcome::unclear) + count(VolumeOutcome::in_use) + count(VolumeOutcome::detaching) == 0;
}

TimePoint VolumeBook::waiting_since() const {
  TimePoint since = TimePoint::max();
  for (const auto& [uid, entry] : entries_)
    if (entry.report.outcome == VolumeOutcome::detaching && entry.unused_since)
      since = std::min(since, *entry.unused_since);
  return since;
}

std::size_t VolumeBook::count(VolumeOutcome outcome) const {
  if (outcome == VolumeOutcome::detached) return detached_.size();
  return static_cast<std::size_t>(std::count_if(
      entries_.begin(), entries_.end(), [&](const auto& entry) { return entry.second.report.outcome == outcome; }));
}

std::string VolumeBook::waiting_for() const {
  std::string all;
  for (const auto& [uid, entry] : entries_) {
    const VolumeReport& report = entry.report;
    if (report.outcome != VolumeOutcome::detaching && report.outcome != VolumeOutcome::unclear) continue;
    all += fmt::format("{}{}{}", all.empty() ? "" : ", ", subject_of(report),
                       report.message.empty() ? "" : " (" + report.message + ")");
  }
  return all;
}

bool VolumeBook::Entry::is_stuck(Duration limit, TimePoint now) const {
  return limit > Duration::zero() && report.outcome == VolumeOutcome::detaching && unused_since &&
         now >= saturating_add(*unused_since, limit);
}

std::optional<std::string> VolumeBook::past_limit(TimePoint now) const {
  for (const auto& [uid, entry] : entries_)
    if (entry.is_stuck(limit_, now))
      return fmt::format(
          "{}{} is still attached to node {}, but no pod has used it for {} s (--volume-limit): {}; see kubectl "
          "describe volumeattachment {}, raise --volume-limit, or set --stuck-volume=wait",
          subject_of(entry.report), entry.report.claim.empty() ? "" : " (claim " + entry.report.claim + ")", node_,
          std::chrono::duration_cast<std::chrono::seconds>(limit_).count(), entry.report.message,
          entry.report.attachment);
  return std::nullopt;
}

TimePoint VolumeBook::next_wake(TimePoint now) const {
  TimePoint next = detached_.next_wake(now);
  for (const auto& [uid, entry] : entries_) {
    if (!entry.unused_since) continue;
    const Duration hold = entry.report.outcome == VolumeOutcome::detaching ? limit_ : leak_hold;
    if (const TimePoint due = saturating_add(*entry.unused_since, hold); due > now) next = std::min(next, due);
  }
  return next;
}

void VolumeBook::diagnose(TimePoint now, std::vector<DiagnosisFact>& facts) const {
  for (const auto& [uid, entry] : entries_) {
    const VolumeReport& report = entry.report;
    if (report.outcome == VolumeOutcome::leaked) {
      facts.push_back(
          {reason::volume_attachment_leaked,
           "VolumeAttachment " + report.attachment,
           fmt::format("{} is attached to node {}, but no pod of the node uses it; the drain does not wait for it{}. "
                       "If nothing needs it, delete the VolumeAttachment",
                       subject_of(report), node_,
                       entry.attachment.detach_error.empty()
                           ? ""
                           : fmt::format(" ({} cannot detach it: {})", report.driver, entry.attachment.detach_error)),
           {},
           {.volumes = {report.attachment}, .holds = false}});
      continue;
    }
    if (report.outcome != VolumeOutcome::detaching) continue;
    if (!entry.attachment.detach_error.empty())
      facts.push_back(
          {reason::volume_detach_error,
           subject_of(report),
           fmt::format("{} cannot detach it from node {}: {}. The driver tries again by itself; if the error "
                       "lasts, see the log of the driver's controller",
                       report.driver, node_, entry.attachment.detach_error),
           {},
           {.volumes = {report.attachment}}});
    if (entry.is_stuck(limit_, now))
      facts.push_back(
          {reason::volume_stuck,
           subject_of(report),
           fmt::format("it is still attached to node {}, but no pod has used {} for {} s: {}; check that the kubelet "
                       "of the node and the controller of {} run (kubectl describe volumeattachment {})",
                       node_, report.claim.empty() ? "it" : "claim " + report.claim,
                       std::chrono::duration_cast<std::chrono::seconds>(limit_).count(), report.message, report.driver,
                       report.attachment),
           {},
           {.volumes = {report.attachment}}});
  }
}

std::vector<VolumeReport> VolumeBook::reports() const {
  std::vector<VolumeReport> reports = detached_.reports();
  for (const auto& [uid, entry] : entries_) reports.push_back(entry.report);
  std::sort(reports.begin(), reports.end(), [](const VolumeReport& a, const VolumeReport& b) {
    return std::tie(a.volume, a.attachment) < std::tie(b.volume, b.attachment);
  });
  return reports;
}

}  // namespace haulout::drain
