#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/drain/wording.hpp"
#include "cli/drain/wording_parts.hpp"

namespace haulout::cli {
namespace {

using drain::EventType;
using drain::PodOutcome;
using drain::PodReport;

// Completes the sentence "pod … is". Some messages of the drain already do that ("blocked by …", "held by …"); others
// follow "waiting: ".
std::string why_it_waits(const PodReport& pod) {
  for (const char* beginning : {"blocked by ", "selected by ", "kept by ", "protected by "})
    if (pod.message.starts_with(beginning)) return because(pod);
  return "waiting: " + because(pod);
}

std::string vanished_line(const PodReport& pod, const Wording& wording) {
  if (pod.outcome == PodOutcome::gone) return fmt::format("pod/{} gone", pod.name);
  return fmt::format("pod/{} {}", pod.name, wording.deleting ? "deleted" : "evicted");
}

std::optional<std::string> pod_line(const drain::Event& event, const Wording& wording) {
  if (event.pod == nullptr) return std::nullopt;
  const PodReport& pod = *event.pod;
  switch (event.type) {
    case EventType::eviction_sent:
    case EventType::signal_sent:
      if (pod.attempts > 1) return std::nullopt;  // one line per pod, not per attempt
      return fmt::format("{} pod {}{}", wording.deleting ? "deleting" : "evicting", pod.key(),
                         dry_run_suffix(wording.dry_run));
    case EventType::parked: return fmt::format("pod {} is {}", pod.key(), why_it_waits(pod));
    case EventType::vanished: return vanished_line(pod, wording);
    case EventType::terminating: return fmt::format("pod {} is terminating", pod.key());
    case EventType::left: return fmt::format("pod {} stays: {}", pod.key(), because(pod));
    case EventType::late_pod: return fmt::format("pod {} was created on the node during the drain", pod.key());
    default: return std::nullopt;
  }
}

std::optional<std::string> volume_line(const drain::Event& event) {
  if (event.volume == nullptr) return std::nullopt;
  if (event.type == EventType::volume_reattach) return reattach_line(*event.volume);
  if (event.type == EventType::volume_detached) return event.volume->text() + " detached";
  if (event.volume->outcome != drain::VolumeOutcome::detaching)
    return event.volume->text() + " is not waited for any more";
  return fmt::format("{} is still attached: {}", event.volume->text(), printable(event.volume->message));
}

std::optional<std::string> diagnosis_line(const drain::Event& event) {
  if (event.diagnosis == nullptr) return std::nullopt;
  const drain::Diagnosis& diagnosis = *event.diagnosis;
  if (event.type == EventType::diagnosis_withdrawn)
    return fmt::format("healed: {} {}", diagnosis.code, diagnosis.subject);
  return fmt::format("problem: {} {}: {}", diagnosis.code, diagnosis.subject,
                     without_subject(printable(diagnosis.message), diagnosis.subject));
}

}  // namespace

std::string dry_run_suffix(drain::DryRunMode mode) {
  switch (mode) {
    case drain::DryRunMode::none: return "";
    case drain::DryRunMode::client: return " (dry run)";
    case drain::DryRunMode::server: return " (server dry run)";
  }
  return "";
}

std::string because(const PodReport& pod) {
  if (pod.message.empty()) return pod.reason;
  return without_subject(printable(pod.message), "pod " + pod.key()) +
         (pod.reason.empty() ? "" : " [" + pod.reason + "]");
}

std::string reattach_line(const drain::VolumeReport& volume) {
  switch (volume.reattach) {
    case drain::Reattach::waiting:
      return fmt::format("{} is detached, waiting until another node has attached it: {}", volume.text(),
                         printable(volume.message));
    case drain::Reattach::attached: return fmt::format("{} is attached to node {}", volume.text(), volume.attached_to);
    case drain::Reattach::late: return fmt::format("Warning: {}: {}", volume.text(), printable(volume.message));
    case drain::Reattach::unclaimed:
    case drain::Reattach::none: break;
  }
  return fmt::format("{} is not attached elsewhere, and the drain does not wait for it: {}", volume.text(),
                     printable(volume.message));
}

bool is_line_of_kubectl(drain::EventType type) {
  return type == EventType::eviction_sent || type == EventType::vanished || type == EventType::uncordoned;
}

std::optional<std::string> line_of(const drain::Event& event, const Wording& wording) {
  const std::string message = printable(event.message);
  switch (event.type) {
    case EventType::eviction_sent:
    case EventType::signal_sent:
    case EventType::parked:
    case EventType::vanished:
    case EventType::terminating:
    case EventType::left:
    case EventType::late_pod: return pod_line(event, wording);
    case EventType::volume_waiting:
    case EventType::volume_detached:
    case EventType::volume_reattach: return volume_line(event);
    case EventType::diagnosis_raised:
    case EventType::diagnosis_withdrawn: return diagnosis_line(event);
    case EventType::throttled: return "evictions wait: " + message;
    case EventType::disconnected: return "waiting for the API server: " + message;
    case EventType::reconnected: return std::string("no longer waiting for the API server");
    case EventType::uncordoned: return fmt::format("node/{} uncordoned", event.node);
    case EventType::planned:
      return fmt::format("node/{}: {} to evict, {} skipped", event.node, count_of(event.progress.to_evict, "pod"),
                         event.progress.skipped);
    case EventType::fit_checked:  // fit_warnings() reports it
    case EventType::cordoned:     // cordon_line() reports it, because it depends on the state before
    case EventType::evicted:      // kubectl prints its line when the pod is deleted
    case EventType::resumed:      // a later event of the pod has a line
    case EventType::settling:
    case EventType::finished: return std::nullopt;  // summary() reports the end
  }
  return std::nullopt;
}

}  // namespace haulout::cli
