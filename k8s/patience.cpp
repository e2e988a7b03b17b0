#include "k8s/patience.hpp"

#include <algorithm>

#include "k8s/status.hpp"

namespace haulout::k8s {
namespace {

constexpr BackoffOptions patient_backoff{std::chrono::milliseconds(300), 2.0, std::chrono::seconds(10),
                                         BackoffOptions::Jitter::equal};

bool is_hopeless_at_first(const Error& error) {
  switch (error.code()) {
    case Errc::unreachable:
    case Errc::timeout:
    case Errc::reset: return false;
    case Errc::status: return is_forbidden(error) || is_unauthorized(error) || !is_transient(error);
    default: return true;
  }
}

}  // namespace

bool is_about_credentials(const Error& error) {
  return is_unauthorized(error) || error.code() == Errc::unavailable;
}

bool may_heal(const Error& error) {
  return is_transient(error) || is_about_credentials(error);
}

PatientCall::PatientCall(Patience patience, bool reached, TimePoint now)
    : patience_(patience),
      reached_(reached),
      limit_(patience.fail_fast && !reached
                 ? std::min(patience.deadline, saturating_add(now, patience.unreachable_limit))
                 : patience.deadline),
      backoff_(patient_backoff) {}

TimePoint PatientCall::attempt_until(TimePoint now) const {
  const TimePoint until = std::min(patience_.deadline, saturating_add(now, patience_.request_timeout));
  return now < limit_ ? std::min(limit_, until) : until;
}

std::optional<TimePoint> PatientCall::next_try(const Error& error, TimePoint now, Rng& rng) {
  if (is_gone(error)) return std::nullopt;
  if (is_forbidden(error)) ++refusals_;
  // A single 403 is not final: right after the start of the server, its authorizer may not be ready yet (measured: 165
  // ms).
  const bool cold = is_forbidden(error) && refusals_ < 2;
  const bool hopeless = (reached_ ? !may_heal(error) : is_hopeless_at_first(error)) && !cold;
  if (patience_.fail_fast && hopeless) return std::nullopt;
  const TimePoint next = saturating_add(now, backoff_.next(rng, error.retry_after));
  // `limit_` applies to refused connections and silence. A server that answers, even with 503, is reachable.
  if (next >= (error.code() == Errc::status ? patience_.deadline : limit_)) return std::nullopt;
  return next;
}

}  // namespace haulout::k8s
