#include "agent/report/status_words.hpp"

#include <fmt/format.h>

#include "agent/report/reasons.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace {

struct StateWords {
  std::string_view sentence;
  std::string_view action;  // the action of the state's Events: what the agent does
};

StateWords words_of(State state) {
  switch (state) {
    case State::unknown:
      return {"it is not known yet whether a reboot is needed: the back end has not answered", "Observing"};
    case State::idle: return {"no reboot is needed", "Observing"};
    case State::pending: return {"an update is needed, or a reboot was requested", "Waiting"};
    case State::waiting: return {"waiting for a slot", "Waiting"};
    case State::draining: return {"the pods are being evicted", "Draining"};
    case State::updating: return {"drained; the installation of the updates is due", reason::updating};
    case State::ready: return {"drained and cordoned: ready for reboot", reason::rebooting};
    case State::rebooting: return {"the machine is rebooting", reason::rebooting};
    case State::verifying:
      return {"rebooted; verifying that the node is Ready and runs the expected version", "Verifying"};
    case State::uncordoning: return {"verification passed; the agent uncordons the node", "Uncordoning"};
    case State::soaking: return {"updated; the slot is released after the soak time", reason::soaking};
    case State::degraded: return {"the update failed: a person must check the node", "Stopping"};
  }
  return {};
}

bool is_trouble(const Status& status) {
  if (status.state == State::degraded) return true;
  return !status.reason.empty() && concern_of(status.reason) == Concern::trouble;
}

// Returns true if a pod without a controller was evicted: nothing recreates it, so its owner should be notified. A
// finished pod is no loss.
bool is_loss(const drain::Event& event) {
  return event.type == drain::EventType::evicted && event.pod && event.pod->controller.empty() &&
         event.pod->reason != reason::finished;
}

std::string loss_of(const drain::PodReport& pod) {
  return fmt::format("pod {} was evicted and has no controller, so it is not created again", pod.key());
}

LogEntry pod_entry(Severity severity, std::string_view what, const drain::PodReport& pod) {
  LogEntry entry{severity, fmt::format("pod {} {}", pod.key(), what), {{"pod", pod.key()}, {"uid", pod.uid}}};
  if (!pod.reason.empty()) entry.fields.emplace_back("reason", pod.reason);
  return entry;
}

LogEntry volume_entry(std::string_view what, const drain::VolumeReport& volume) {
  LogEntry entry{Severity::info, fmt::format("volume {} {}", volume.volume, what), {{"volume", volume.volume}}};
  if (!volume.claim.empty()) entry.fields.emplace_back("claim", volume.claim);
  return entry;
}

std::string wait_of(const drain::VolumeReport& volume) {
  switch (volume.outcome) {
    case drain::VolumeOutcome::detaching: return "is still attached: " + volume.message;
    case drain::VolumeOutcome::in_use:
      return "is used again by a pod that must leave; the drain waits for that pod first";
    case drain::VolumeOutcome::kept:
      return "is used by a pod that stays on the node, so the drain does not wait for it";
    default: return "is not waited for any more, because no pod of the node is known to have used it";
  }
}

LogEntry reattach_entry(const drain::VolumeReport& volume) {
  using enum drain::Reattach;
  if (volume.reattach == attached) return volume_entry("is attached to node " + volume.attached_to, volume);
  if (volume.reattach == waiting)
    return volume_entry("is detached, waiting until another node has attached it: " + volume.message, volume);
  LogEntry entry =
      volume_entry("is not attached to another node, and the drain does not wait for that: " + volume.message, volume);
  if (volume.reattach == late) entry.severity = Severity::warning;
  return entry;
}

LogEntry diagnosis_entry(Severity severity, std::string_view what, const drain::Diagnosis& diagnosis) {
  return {severity,
          fmt::format("{}: {}: {}", what, diagnosis.subject, diagnosis.message),
          {{"diagnosis", diagnosis.code}, {"subject", diagnosis.subject}}};
}

LogEntry plain_entry(Severity severity, const drain::Event& event) {
  std::string message(to_string(event.type));
  if (!event.message.empty()) message += ": " + event.message;
  return {severity, std::move(message), {}};
}

}  // namespace

std::string sentence_of(const Status& status) {
  return status.message.empty() ? std::string(words_of(status.state).sentence) : status.message;
}

std::string reason_of(const Status& status) {
  if (!status.reason.empty()) return status.reason;
  std::string name(to_string(status.state));
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

std::string line_of(const Status& status) {
  return fmt::format("{}{}{}: {}", to_string(status.state), status.reason.empty() ? "" : ", ", status.reason,
                     sentence_of(status));
}

std::optional<EventNote> event_of(const Status& before, const Status& now) {
  if (before.state == now.state && before.reason == now.reason) return std::nullopt;
  return EventNote{.type = is_trouble(now) ? k8s::NodeEvent::Type::warning : k8s::NodeEvent::Type::normal,
                   .reason = reason_of(now),
                   .action = std::string(words_of(now.state).action),
                   .note = sentence_of(now)};
}

LogEntry log_entry_of(const std::optional<Status>& before, const Status& now) {
  const bool news = !before || before->state != now.state || before->reason != now.reason;
  LogEntry entry{Severity::debug, line_of(now), {{"state", std::string(to_string(now.state))}}};
  if (news) entry.severity = is_trouble(now) ? Severity::warning : Severity::notice;
  if (!now.reason.empty()) entry.fields.emplace_back("reason", now.reason);
  if (before && before->state != now.state) entry.fields.emplace_back("from", to_string(before->state));
  return entry;
}

EventNote warning_event_of(const Status& status) {
  return {.type = k8s::NodeEvent::Type::warning,
          .reason = reason_of(status),
          .action = std::string(words_of(status.state).action),
          .note = sentence_of(status)};
}

LogEntry warning_entry_of(const Status& status) {
  return {Severity::warning,
          sentence_of(status),
          {{"state", std::string(to_string(status.state))}, {"reason", reason_of(status)}}};
}

std::optional<EventNote> event_of(const drain::Event& event) {
  if (event.type == drain::EventType::diagnosis_raised && event.diagnosis)
    return EventNote{.type = k8s::NodeEvent::Type::warning,
                     .reason = event.diagnosis->code,
                     .action = std::string(words_of(State::draining).action),
                     .note = event.diagnosis->subject + ": " + event.diagnosis->message};
  if (event.type == drain::EventType::left && event.pod && event.pod->reason == reason::pod_pinned)
    return EventNote{.type = k8s::NodeEvent::Type::warning,
                     .reason = event.pod->reason,
                     .action = std::string(words_of(State::draining).action),
                     .note = fmt::format("pod {}: {}", event.pod->key(), event.pod->message)};
  if (is_loss(event))
    return EventNote{.type = k8s::NodeEvent::Type::warning,
                     .reason = reason::unmanaged_pod_evicted,
                     .action = std::string(words_of(State::draining).action),
                     .note = loss_of(*event.pod)};
  return std::nullopt;
}

std::optional<LogEntry> log_entry_of(const drain::Event& event) {
  using enum drain::EventType;
  switch (event.type) {
    case evicted:
      if (is_loss(event)) return pod_entry(Severity::warning, "evicted; no controller creates it again", *event.pod);
      if (event.pod) return pod_entry(Severity::notice, "evicted", *event.pod);
      return std::nullopt;
    case parked:
      if (event.pod) {
        const std::string& why = event.pod->message;
        return pod_entry(Severity::info, (why.starts_with("waiting ") ? "is " : "waits: ") + why, *event.pod);
      }
      return std::nullopt;
    case vanished:
      if (event.pod) return pod_entry(Severity::info, "was deleted", *event.pod);
      return std::nullopt;
    case terminating:
      if (event.pod) return pod_entry(Severity::info, "is terminating", *event.pod);
      return std::nullopt;
    case left:
      if (event.pod) return pod_entry(Severity::notice, "stays: " + event.pod->message, *event.pod);
      return std::nullopt;
    case late_pod:
      if (event.pod) return pod_entry(Severity::info, "was created on the node", *event.pod);
      return std::nullopt;
    case diagnosis_raised:
      if (event.diagnosis)
        return diagnosis_entry(Severity::warning, event.diagnosis->scope.holds ? "blocks the drain" : "problem",
                               *event.diagnosis);
      return std::nullopt;
    case diagnosis_withdrawn:
      if (event.diagnosis) return diagnosis_entry(Severity::notice, "resolved", *event.diagnosis);
      return std::nullopt;
    case volume_waiting:
      if (!event.volume) return std::nullopt;
      return volume_entry(wait_of(*event.volume), *event.volume);
    case volume_detached:
      if (event.volume) return volume_entry("is detached", *event.volume);
      return std::nullopt;
    case volume_reattach: return event.volume ? std::optional(reattach_entry(*event.volume)) : std::nullopt;
    case fit_checked: return plain_entry(Severity::warning, event);
    case throttled:
    case disconnected: return plain_entry(Severity::notice, event);
    case cordoned:
    case uncordoned:
    case planned:
    case settling:
    case finished:
    case reconnected: return plain_entry(Severity::info, event);
    case eviction_sent:
    case signal_sent:
    case resumed: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace haulout::agent
