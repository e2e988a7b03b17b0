#include "agent/lifecycle/leaving.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/lifecycle/node_status.hpp"
#include "agent/text.hpp"

namespace haulout::agent {

Leaving leaving_of(const Record& record) {
  if (record.state == State::draining) return Leaving::draining;
  const Duty cordon = duties_of(record.state).cordon;
  // The last: booted once more, after it had taken pods again.
  const bool in_service = cordon == Duty::no || (cordon == Duty::keep && record.uncordon) || !in_maintenance(record);
  return in_service ? Leaving::drains : Leaving::has_left;
}

LeavingResult leaving_result(const drain::Report& report) {
  if (report.outcome == drain::Outcome::refused) return {"ShutdownUndrained", report.message};
  std::size_t gone = 0, left = 0;
  std::string first;
  for (const drain::PodReport& pod : report.pods) {
    if (pod.outcome == drain::PodOutcome::skipped) continue;
    const bool went = pod.outcome == drain::PodOutcome::evicted || pod.outcome == drain::PodOutcome::gone;
    ++(went ? gone : left);
    if (went || !first.empty()) continue;
    const std::string_view why = pod.reason.empty() ? drain::to_string(pod.outcome) : std::string_view(pod.reason);
    first = fmt::format("{} ({})", pod.key(), why);
  }
  if (report.outcome == drain::Outcome::drained)
    return {"ShutdownDrained", fmt::format("somebody shuts the machine down: {} left before", count_of(gone, "pod"))};
  std::string message =
      fmt::format("somebody shuts the machine down: {} of {} left before", gone, count_of(gone + left, "pod"));
  if (left > 0) message += ", but not " + first + (left > 1 ? fmt::format(" and {} more", left - 1) : "");
  if (report.outcome == drain::Outcome::failed || left == 0) message += "; " + report.message;
  return {"ShutdownUndrained", std::move(message)};
}

}  // namespace haulout::agent
