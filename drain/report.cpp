#include "drain/report.hpp"

#include <fmt/format.h>

#include "drain/observer.hpp"

namespace haulout::drain {

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::drained: return "drained";
    case Outcome::blocked: return "blocked";
    case Outcome::refused: return "refused";
    case Outcome::cancelled: return "cancelled";
    case Outcome::node_gone: return "node-gone";
    case Outcome::failed: return "failed";
  }
  return "unknown";
}

std::string_view to_string(PodOutcome outcome) {
  switch (outcome) {
    case PodOutcome::planned: return "planned";
    case PodOutcome::skipped: return "skipped";
    case PodOutcome::refused: return "refused";
    case PodOutcome::waiting: return "waiting";
    case PodOutcome::terminating: return "terminating";
    case PodOutcome::evicted: return "evicted";
    case PodOutcome::gone: return "gone";
  }
  return "unknown";
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::evict: return "evict";
    case Verdict::skip: return "skip";
    case Verdict::refuse: return "refuse";
    case Verdict::park: return "park";
  }
  return "unknown";
}

std::string_view to_string(VolumeOutcome outcome) {
  switch (outcome) {
    case VolumeOutcome::unclear: return "unclear";
    case VolumeOutcome::in_use: return "in-use";
    case VolumeOutcome::kept: return "kept";
    case VolumeOutcome::detaching: return "detaching";
    case VolumeOutcome::detached: return "detached";
    case VolumeOutcome::leaked: return "leaked";
    case VolumeOutcome::inline_volume: return "inline";
  }
  return "unknown";
}

std::string_view to_string(Reattach reattach) {
  switch (reattach) {
    case Reattach::none: return "none";
    case Reattach::waiting: return "waiting";
    case Reattach::attached: return "attached";
    case Reattach::unclaimed: return "unclaimed";
    case Reattach::late: return "late";
  }
  return "unknown";
}

std::string_view to_string(RetirementOutcome outcome) {
  switch (outcome) {
    case RetirementOutcome::retired: return "retired";
    case RetirementOutcome::kept: return "kept";
    case RetirementOutcome::replaced: return "replaced";
    case RetirementOutcome::unfinished: return "unfinished";
    case RetirementOutcome::cancelled: return "cancelled";
    case RetirementOutcome::failed: return "failed";
  }
  return "unknown";
}

std::string_view to_string(NodeDeletion deletion) {
  switch (deletion) {
    case NodeDeletion::not_sent: return "not-sent";
    case NodeDeletion::unknown: return "unknown";
    case NodeDeletion::done: return "done";
    case NodeDeletion::by_another: return "by-another";
  }
  return "unknown";
}

std::string_view to_string(EventType type) {
  switch (type) {
    case EventType::planned: return "planned";
    case EventType::fit_checked: return "fit-checked";
    case EventType::cordoned: return "cordoned";
    case EventType::eviction_sent: return "eviction-sent";
    case EventType::signal_sent: return "signal-sent";
    case EventType::evicted: return "evicted";
    case EventType::parked: return "parked";
    case EventType::resumed: return "resumed";
    case EventType::vanished: return "vanished";
    case EventType::volume_waiting: return "volume-waiting";
    case EventType::volume_detached: return "volume-detached";
    case EventType::volume_reattach: return "volume-reattach";
    case EventType::terminating: return "terminating";
    case EventType::left: return "left";
    case EventType::late_pod: return "late-pod";
    case EventType::diagnosis_raised: return "diagnosis-raised";
    case EventType::diagnosis_withdrawn: return "diagnosis-withdrawn";
    case EventType::throttled: return "throttled";
    case EventType::disconnected: return "disconnected";
    case EventType::reconnected: return "reconnected";
    case EventType::settling: return "settling";
    case EventType::uncordoned: return "uncordoned";
    case EventType::finished: return "finished";
  }
  return "unknown";
}

std::string VolumeReport::text() const {
  return fmt::format("volume {}{}", volume, claim.empty() ? "" : " (claim " + claim + ")");
}

}  // namespace haulout::drain
