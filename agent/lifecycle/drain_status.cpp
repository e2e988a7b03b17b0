#include "agent/lifecycle/drain_status.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/text.hpp"

namespace haulout::agent {

namespace {

// Such a finding tells what follows after the eviction of its pod, not why that one waits.
bool tells_of_later(const std::string& code) {
  return code == "LOCAL_PV";
}

}  // namespace

void DrainStatus::begin() {
  waiting_.clear();
  attached_.clear();
  reattaching_.clear();
  diagnoses_.clear();
  trouble_.clear();
  progress_ = {};
}

void DrainStatus::on_event(const drain::Event& event) {
  progress_ = event.progress;
  using enum drain::EventType;
  if (event.pod && event.type == parked) {
    Waiting& waiting = waiting_[event.pod->uid];
    if (waiting.order == 0) waiting.order = ++seen_;
    waiting.reason = event.pod->reason;
    waiting.pod = "pod " + event.pod->key();
    waiting.message = waiting.pod + ": " + event.pod->message;
  } else if (event.pod &&
             (event.type == evicted || event.type == vanished || event.type == terminating || event.type == left)) {
    waiting_.erase(event.pod->uid);
  } else if (event.volume && event.type == volume_waiting && event.volume->outcome == drain::VolumeOutcome::detaching) {
    attached_[event.volume->attachment] = fmt::format("volume {} (claim {}) is still attached: {}",
                                                      event.volume->volume, event.volume->claim, event.volume->message);
  } else if (event.volume && (event.type == volume_waiting || event.type == volume_detached)) {
    attached_.erase(event.volume->attachment);
  } else if (event.volume && event.type == volume_reattach) {
    if (event.volume->reattach == drain::Reattach::waiting)
      reattaching_[event.volume->attachment] =
          fmt::format("volume {} (claim {}) is detached, and waited for until another node has it: {}",
                      event.volume->volume, event.volume->claim, event.volume->message);
    else
      reattaching_.erase(event.volume->attachment);
  } else if (event.diagnosis && event.type == diagnosis_raised) {
    diagnoses_[{event.diagnosis->subject, event.diagnosis->code}] = event.diagnosis->message;
  } else if (event.diagnosis && event.type == diagnosis_withdrawn) {
    diagnoses_.erase({event.diagnosis->subject, event.diagnosis->code});
  } else if (event.type == disconnected || event.type == reconnected) {
    trouble_ = event.message;
  }
  next_.on_event(event);
  changed_();
}

bool DrainStatus::uncordoned_meanwhile() const {
  return std::any_of(diagnoses_.begin(), diagnoses_.end(),
                     [](const auto& finding) { return finding.first.second == "UNCORDONED_MEANWHILE"; });
}

const DrainStatus::Waiting* DrainStatus::first() const {
  const auto found = std::min_element(waiting_.begin(), waiting_.end(),
                                      [](const auto& a, const auto& b) { return a.second.order < b.second.order; });
  return found == waiting_.end() ? nullptr : &found->second;
}

std::string DrainStatus::reason() const {
  const Waiting* waiting = first();
  if (waiting) return waiting->reason;
  if (waits_for_volumes()) return attached_.empty() ? "ReattachingVolumes" : "DetachingVolumes";
  return "Evicting";
}

// A diagnosis of the pod, or of the budget that the pod's own message names, says more than that message.
std::string DrainStatus::cause_of(const Waiting& waiting) const {
  for (const auto& [finding, message] : diagnoses_) {
    const auto& [subject, code] = finding;
    if (tells_of_later(code)) continue;
    if (subject == waiting.pod) return fmt::format("{}: {}", subject, message);
    if (waiting.message.find(subject + ":") != std::string::npos)
      return fmt::format("{} waits for {}: {}", waiting.pod, subject, message);
  }
  return waiting.message;
}

std::string DrainStatus::message() const {
  if (const Waiting* waiting = first()) {
    const std::size_t others = waiting_.size() - 1;
    std::string cause = cause_of(*waiting);
    if (others == 0) return cause;
    return fmt::format("{} (and {} more {})", cause, others, others == 1 ? "pod waits" : "pods wait");
  }
  if (waits_for_volumes()) {
    const auto& volumes = attached_.empty() ? reattaching_ : attached_;
    const std::string& one = volumes.begin()->second;
    return volumes.size() == 1 ? one : fmt::format("{} (and {} more)", one, count_of(volumes.size() - 1, "volume"));
  }
  if (!trouble_.empty()) return trouble_;
  for (const auto& [finding, message] : diagnoses_) {
    const auto& [subject, code] = finding;
    if (!tells_of_later(code) && (subject.starts_with("node ") || subject.starts_with("pod ")))
      return fmt::format("{}: {}", subject, message);
  }
  if (progress_.to_evict == 0) return "looking for pods that must leave";
  return fmt::format("{} of {} {} gone", progress_.vanished, count_of(progress_.to_evict, "pod"),
                     progress_.to_evict == 1 ? "has" : "have");
}

}  // namespace haulout::agent
