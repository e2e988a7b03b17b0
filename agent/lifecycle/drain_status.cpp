#include "agent/lifecycle/drain_status.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {

using drain::Diagnosis;

namespace {

std::string words_of(const Diagnosis& finding) {
  return finding.subject + ": " + finding.message;
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

bool concerns(const std::vector<std::string>& volumes, const std::map<std::string, std::string>& attached) {
  return std::any_of(volumes.begin(), volumes.end(), [&](const auto& volume) { return attached.contains(volume); });
}

std::string of_unclear(std::size_t count) {
  return fmt::format("{} {} still attached, and it is unknown whether a pod of the node used {}",
                     count_of(count, "volume"), count == 1 ? "is" : "are", count == 1 ? "it" : "them");
}

bool is_of_node(const Diagnosis& finding) {
  return finding.scope.pods.empty() && finding.scope.volumes.empty();
}

template <class Predicate>
const Diagnosis* find(const Findings& findings, Predicate such) {
  const auto found = std::find_if(findings.begin(), findings.end(), such);
  return found == findings.end() ? nullptr : &*found;
}

// Returns a clause with one more diagnosis and the number of the others; empty if there is none. Prefers a diagnosis
// that delays the drain.
template <class Predicate>
std::string besides(const Findings& findings, Predicate such) {
  const auto count = std::count_if(findings.begin(), findings.end(), such);
  if (count == 0) return {};
  const Diagnosis* one = find(findings, [&](const Diagnosis& finding) { return such(finding) && finding.scope.holds; });
  if (!one) one = find(findings, such);
  const auto others = count - 1;
  return fmt::format("; besides, {}{}", words_of(*one),
                     others == 0 ? "" : fmt::format(" (and {} more {})", others, others == 1 ? "problem" : "problems"));
}

}  // namespace

bool uncordoned_meanwhile(const Findings& findings) {
  return find(findings, [](const Diagnosis& finding) { return finding.code == reason::uncordoned; }) != nullptr;
}

void DrainStatus::begin() {
  waiting_.clear();
  attached_.clear();
  reattaching_.clear();
  trouble_.clear();
  progress_ = {};
}

void DrainStatus::on_event(const drain::Event& event) {
  progress_ = event.progress;
  using enum drain::EventType;
  if (event.pod && event.type == parked) {
    Waiting& waiting = waiting_[event.pod->uid];
    if (waiting.order == 0) waiting.order = ++seen_;
    waiting.uid = event.pod->uid;
    waiting.reason = event.pod->reason;
    waiting.pod = "pod " + event.pod->key();
    waiting.message = waiting.pod + ": " + event.pod->message;
  } else if (event.pod &&
             (event.type == evicted || event.type == vanished || event.type == terminating || event.type == left)) {
    waiting_.erase(event.pod->uid);
  } else if (event.volume && event.type == volume_waiting && event.volume->outcome == drain::VolumeOutcome::detaching) {
    attached_[event.volume->attachment] =
        fmt::format("{} is still attached: {}", event.volume->text(), event.volume->message);
  } else if (event.volume && (event.type == volume_waiting || event.type == volume_detached)) {
    attached_.erase(event.volume->attachment);
  } else if (event.volume && event.type == volume_reattach) {
    if (event.volume->reattach == drain::Reattach::waiting)
      reattaching_[event.volume->attachment] =
          fmt::format("{} is detached, waiting until another node has attached it: {}", event.volume->text(),
                      event.volume->message);
    else
      reattaching_.erase(event.volume->attachment);
  } else if (event.type == disconnected || event.type == reconnected) {
    trouble_ = event.message;
  }
  next_.on_event(event);
  changed_();
}

const DrainStatus::Waiting* DrainStatus::first() const {
  const auto found = std::min_element(waiting_.begin(), waiting_.end(),
                                      [](const auto& a, const auto& b) { return a.second.order < b.second.order; });
  return found == waiting_.end() ? nullptr : &found->second;
}

const Diagnosis* DrainStatus::stuck_volume(const Findings& findings) const {
  return find(findings, [&](const Diagnosis& finding) {
    return finding.code == reason::volume_stuck && concerns(finding.scope.volumes, attached_);
  });
}

// Returns the diagnosis that best explains why volumes are still attached: a stuck volume, otherwise one that delays
// the drain.
const Diagnosis* DrainStatus::of_attached(const Findings& findings) const {
  if (const Diagnosis* stuck = stuck_volume(findings)) return stuck;
  return find(findings, [&](const Diagnosis& finding) {
    return finding.scope.holds && concerns(finding.scope.volumes, attached_);
  });
}

std::string DrainStatus::reason(const Findings& findings) const {
  if (const Waiting* waiting = first()) return waiting->reason;
  if (!waits_for_volumes()) {
    if (waits_for_unclear()) return reason::detaching_volumes;
    const bool unproved =
        find(findings, [](const Diagnosis& finding) { return finding.code == reason::emptiness_unproved; }) != nullptr;
    return unproved ? reason::api_unavailable : reason::evicting;
  }
  if (attached_.empty()) return reason::reattaching_volumes;
  return stuck_volume(findings) ? reason::volume_stuck : reason::detaching_volumes;
}

std::string DrainStatus::of_pods(const Waiting& waiting, const Findings& findings) const {
  const auto about_it = [&](const Diagnosis& finding) { return contains(finding.scope.pods, waiting.uid); };
  const Diagnosis* cause =
      find(findings, [&](const Diagnosis& finding) { return finding.scope.holds && about_it(finding); });
  std::string text = !cause                          ? waiting.message
                     : cause->subject == waiting.pod ? words_of(*cause)
                                                     : fmt::format("{} waits for {}", waiting.pod, words_of(*cause));
  const std::size_t others = waiting_.size() - 1;
  if (others > 0) text += fmt::format(" (and {} more {})", others, others == 1 ? "pod waits" : "pods wait");
  return text + besides(findings, [&](const Diagnosis& finding) {
           return &finding != cause && (about_it(finding) || is_of_node(finding));
         });
}

std::string DrainStatus::of_volumes(const Findings& findings) const {
  const auto& volumes = attached_.empty() ? reattaching_ : attached_;
  const Diagnosis* cause = of_attached(findings);
  std::string text = cause ? words_of(*cause) : volumes.begin()->second;
  if (volumes.size() > 1)
    text += fmt::format(" (and {} more {})", volumes.size() - 1, volumes.size() == 2 ? "volume" : "volumes");
  return text + besides(findings, is_of_node);
}

std::string DrainStatus::message(const Findings& findings) const {
  if (const Waiting* waiting = first()) return of_pods(*waiting, findings);
  if (waits_for_volumes()) return of_volumes(findings);
  if (!trouble_.empty()) return trouble_;
  const Diagnosis* cause = find(findings, [](const Diagnosis& finding) { return finding.scope.holds; });
  const std::string text = cause                     ? words_of(*cause)
                           : waits_for_unclear()     ? of_unclear(progress_.unclear)
                           : progress_.to_evict == 0 ? "no pod that must leave is known yet"
                                                     : fmt::format("{} of {} deleted", progress_.vanished,
                                                                   count_of(progress_.to_evict, "pod"));
  return text + besides(findings, [&](const Diagnosis& finding) { return &finding != cause; });
}

}  // namespace haulout::agent
