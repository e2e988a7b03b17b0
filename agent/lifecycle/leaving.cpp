#include "agent/lifecycle/leaving.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/node/node_status.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {

Leaving leaving_of(const Record& record) {
  if (record.state == State::draining) return Leaving::draining;
  const Duty cordon = duties_of(record.state).cordon;
  // The last condition covers a machine that booted again after its node had become schedulable.
  const bool in_service = cordon == Duty::no || (cordon == Duty::keep && record.uncordon) || !in_maintenance(record);
  return in_service ? Leaving::drains : Leaving::has_left;
}

LeavingResult leaving_result(const drain::Report& report) {
  if (report.outcome == drain::Outcome::refused) return {reason::shutdown_undrained, report.message};
  std::size_t evicted = 0, ended = 0, left = 0;
  std::string first;
  for (const drain::PodReport& pod : report.pods) {
    if (pod.outcome == drain::PodOutcome::skipped) continue;
    if (pod.outcome == drain::PodOutcome::evicted) {
      ++evicted;
    } else if (pod.outcome == drain::PodOutcome::gone) {
      ++ended;
    } else if (++left == 1) {
      const std::string_view why = pod.reason.empty() ? drain::to_string(pod.outcome) : std::string_view(pod.reason);
      first = fmt::format("{} ({})", pod.key(), why);
    }
  }
  const bool drained = report.outcome == drain::Outcome::drained;
  std::string message = "the machine is shutting down, not requested by the agent: ";
  message += drained && ended == 0
                 ? count_of(evicted, "pod") + " left before that"
                 : fmt::format("{} of {} left before that", evicted, count_of(evicted + ended + left, "pod"));
  if (ended > 0)
    message += fmt::format(
        ", {} ended without an eviction: the kubelet ended them (shutdownGracePeriod), or they were deleted", ended);
  if (left > 0)
    message += fmt::format("; {} did not: {}{}", left, first, left > 1 ? fmt::format(" and {} more", left - 1) : "");
  if (!drained && (report.outcome == drain::Outcome::failed || left == 0)) message += "; " + report.message;
  return {drained ? reason::shutdown_drained : reason::shutdown_undrained, std::move(message)};
}

}  // namespace haulout::agent
