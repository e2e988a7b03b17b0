#include "k8s/watch_pacing.hpp"

#include <algorithm>

#include "k8s/status.hpp"

namespace haulout::k8s {
namespace {

// A list that cannot be decoded may be temporary, for example a truncated response or a login page. After this number
// of them in a row, the server does not count as Kubernetes.
constexpr unsigned unreadable_lists = 3;

// Returns true if a denial was first seen at least denial_recheck ago. Records the first one in `denied_at`.
bool confirmed(std::optional<TimePoint>& denied_at, TimePoint now) {
  if (!denied_at) denied_at = now;
  return now - *denied_at >= denial_recheck;
}

}  // namespace

bool ListPacing::hopeless(const Error& error, TimePoint now) {
  if (is_forbidden(error)) return confirmed(denied_at_, now);
  denied_at_.reset();
  if (error.code() == Errc::decode) return ++unreadable_ >= unreadable_lists;
  unreadable_ = 0;
  return !is_transient(error) && !is_expired(error);
}

std::optional<Duration> ListPacing::after(const Error& error, bool synced, TimePoint now, Rng& rng) {
  const bool hopeless_now = hopeless(error, now);
  if (hopeless_now && !synced) return std::nullopt;
  const auto delay = backoff_.next(rng, error.retry_after);
  return is_forbidden(error) ? std::max(delay, denial_recheck) : delay;
}

WatchStep WatchPacing::after_denial(TimePoint now, Rng& rng) {
  if (confirmed(denied_at_, now)) return {WatchStep::Kind::poll, {}};
  return {WatchStep::Kind::watch, std::max(backoff_.next(rng), denial_recheck)};
}

// Returns true if a list is needed. A watch may be silent because the server has not reached the resourceVersion from
// which the watch continues; only a list shows that. A watch whose events cannot be decoded, or that failed with a
// permanent error, is not continued either.
bool WatchPacing::place_is_lost(const WatchEnd& end) {
  if (end.silent) return true;
  if (end.error && (is_expired(*end.error) || end.error->code() == Errc::decode || !is_transient(*end.error))) {
    return true;
  }
  // The server was not reachable. After it returns it may have an older state (an etcd restored from a backup), and a
  // watch from a resourceVersion that it has not reached yet gives no sign of that. A restarted server could not
  // continue the watch anyway.
  if (end.error && end.error->code() == Errc::unreachable) return true;
  return !end.opened && ++unopened_ % attempts_per_list == 0;
}

WatchStep WatchPacing::after(const WatchEnd& end, TimePoint now, Rng& rng) {
  const bool denied = end.error && is_forbidden(*end.error);
  if (end.opened || !denied) denied_at_.reset();
  if (end.opened) {
    unopened_ = 0;
    if (end.lived >= long_life) backoff_.reset();
  }
  if (denied) return after_denial(now, rng);
  if (!end.error && end.lived >= long_life) return {WatchStep::Kind::watch, {}};
  const auto kind = place_is_lost(end) ? WatchStep::Kind::list : WatchStep::Kind::watch;
  return {kind, backoff_.next(rng, end.error ? end.error->retry_after : std::nullopt)};
}

}  // namespace haulout::k8s
