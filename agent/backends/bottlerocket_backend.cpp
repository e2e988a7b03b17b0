#include "agent/backends/bottlerocket_backend.hpp"

#include <fmt/format.h>

#include "agent/backends/recheck.hpp"
#include "base/scope_exit.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

using State = BottlerocketStatus::State;

// A refresh fetches metadata from the update repository. The interval is shorter than the shortest wait of changed().
// So the first pending() after each changed() refreshes, regardless of the calls of pending() in between.
constexpr Duration refresh_interval = std::chrono::minutes(7);

// How often apply() checks whether a refresh has ended.
constexpr Duration look_interval = std::chrono::seconds(1);

Pending yes(const std::string& version, std::string_view what) {
  return {.need = Need::yes, .reasons = {fmt::format("Bottlerocket {} is {}", version, what)}, .target = version};
}

Pending unknown(std::string problem) {
  return {.need = Need::unknown, .problem = "Bottlerocket's update status " + std::move(problem)};
}

Error other_version(const std::string& target, const std::string& have, std::string_view what) {
  return Error(Errc::invalid, fmt::format("Bottlerocket {} should be installed, but {} is {} now", target,
                                          have.empty() ? "none" : have, what));
}

bool is_in_place(const BottlerocketStatus& status, const std::string& target) {
  return status.state == State::ready && status.staged_boots_next && status.staged == target;
}

}  // namespace

Pending bottlerocket_answer(const BottlerocketStatus& status) {
  const bool failed = status.last && status.last->type == "refresh" && status.last->status != "Success";
  switch (status.state) {
    case State::ready:
      if (status.staged.empty() || !status.staged_boots_next)
        return unknown("is Ready, but has no version for the next boot");
      return yes(status.staged, "installed for the next boot");
    case State::staged:
      if (status.chosen.empty()) return {.need = Need::no};  // withdrawn after it was written
      return yes(status.chosen, status.chosen == status.staged ? "written to the other partition" : "available");
    case State::available:
      if (status.chosen.empty()) return unknown("is Available, but has no version");
      return yes(status.chosen, "available");
    case State::idle:
      if (failed) return unknown(fmt::format("shows that the last check for updates failed: {}", status.last->error));
      return {.need = Need::no};
  }
  return unknown("is unknown");
}

bool BottlerocketBackend::refresh_is_due(const BottlerocketStatus& status) const {
  if (status.state == State::ready) return false;
  return !status.last || clock_.now() >= next_refresh_;
}

Task<BottlerocketStatus> BottlerocketBackend::current(TimePoint deadline) {
  CO_TRY(BottlerocketStatus status, co_await api_.status(deadline));
  if (!refresh_is_due(status) || refreshing_ || applying_) co_return std::move(status);
  refreshing_ = true;
  const ScopeExit done([this] { refreshing_ = false; });
  // Limits retries, too: after a failure the next refresh also waits for the interval.
  next_refresh_ = clock_.now() + refresh_interval;
  co_return co_await api_.run(BottlerocketAction::refresh, deadline);
}

asio::awaitable<Pending> BottlerocketBackend::pending(TimePoint deadline) {
  const auto status = co_await current(deadline);
  if (!status) co_return Pending{.need = Need::unknown, .problem = status.error().message()};
  co_return bottlerocket_answer(*status);
}

Task<std::string> BottlerocketBackend::booted(TimePoint deadline) {
  return api_.version(deadline);
}

Task<> BottlerocketBackend::apply(std::string target, TimePoint deadline) {
  while (refreshing_) {
    if (clock_.now() >= deadline)
      co_return Error(Errc::timeout, "the check for updates of Bottlerocket did not finish in time");
    co_await clock_.sleep_until(clock_.now() + look_interval);
  }
  CO_TRY(BottlerocketStatus status, co_await current(deadline));
  applying_ = true;
  const ScopeExit done([this] { applying_ = false; });
  if (target.empty()) target = status.state == State::ready ? status.staged : status.chosen;
  if (is_in_place(status, target)) co_return Result<>();
  if (status.state == State::ready) co_return other_version(target, status.staged, "in place");
  if (status.state == State::idle || status.chosen.empty() || status.chosen != target)
    co_return other_version(target, status.chosen, "offered");
  if (status.state != State::staged || status.staged != target) {
    CO_TRY(status, co_await api_.run(BottlerocketAction::prepare, deadline));
    if (status.state != State::staged || status.staged != target)
      co_return other_version(target, status.staged, "written");
  }
  CO_TRY(status, co_await api_.run(BottlerocketAction::activate, deadline));
  if (!is_in_place(status, target)) co_return other_version(target, status.staged, "in place");
  co_return Result<>();
}

asio::awaitable<void> BottlerocketBackend::changed() {
  co_await clock_.sleep_until(next_recheck(clock_, rng_));
}

}  // namespace haulout::agent
