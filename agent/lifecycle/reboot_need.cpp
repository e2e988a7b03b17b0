#include "agent/lifecycle/reboot_need.hpp"

#include <algorithm>

#include "retry/backoff.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

RebootNeed::RebootNeed(Backend& backend, Activity& activity, const NodeView& view, const Record& record, Clock& clock,
                       Rng& rng)
    : backend_(backend), activity_(activity), view_(view), record_(record), clock_(clock), rng_(rng) {}

asio::awaitable<void> RebootNeed::follow() {
  Backoff backoff({std::chrono::seconds(1), 2.0, std::chrono::minutes(5), BackoffOptions::Jitter::equal});
  for (;;) {
    pending_ = co_await backend_.pending(clock_.now() + std::chrono::minutes(1));
    answered_ = true;
    activity_.wake();
    if (pending_.need == Need::unknown) {
      co_await clock_.sleep_until(clock_.now() + backoff.next(rng_));
      continue;
    }
    backoff.reset();
    co_await backend_.changed();
    co_await clock_.sleep_until(clock_.now() + std::chrono::milliseconds(200));  // counts a burst of changes as one
  }
}

asio::awaitable<void> RebootNeed::first_answer() {
  while (!activity_.must_reload() && !answered_) co_await activity_.wait(TimePoint::max());
}

bool RebootNeed::wanted() const {
  if (requested()) return true;
  if (pending_.need != Need::yes) return false;
  return std::find(record_.bad_targets.begin(), record_.bad_targets.end(), pending_.target) ==
         record_.bad_targets.end();
}

Task<> RebootNeed::learn_version(TimePoint deadline) {
  auto version = co_await backend_.booted(deadline);
  if (!version) co_return std::move(version).error();
  version_ = *std::move(version);
  co_return Result<>();
}

}  // namespace haulout::agent
