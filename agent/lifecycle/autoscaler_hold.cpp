#include "agent/lifecycle/autoscaler_hold.hpp"

#include <fmt/format.h>

#include "agent/lifecycle/node_record.hpp"
#include "base/scope_exit.hpp"
#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Time limit of one request. Shorter than for requests on which the update depends, because the update waits for it.
constexpr Duration attempt_limit = std::chrono::seconds(10);
// Number of conflicts in a row after which an attempt ends: others write the Node all the time.
constexpr unsigned most_conflicts = 4;
constexpr BackoffOptions after_conflict{std::chrono::milliseconds(100), 2.0, std::chrono::seconds(1),
                                        BackoffOptions::Jitter::equal};
// Backoff after an error that may pass, and before the mark follows a change of another client.
constexpr BackoffOptions patience_with_errors{std::chrono::seconds(2), 2.0, std::chrono::minutes(1),
                                              BackoffOptions::Jitter::equal};
// Backoff after a refusal: a policy or a right changes seldom.
constexpr BackoffOptions patience_with_refusals{std::chrono::minutes(1), 2.0, std::chrono::minutes(10),
                                                BackoffOptions::Jitter::equal};
// The backoffs start again if nothing had to be done for this time. So a client that removes the mark again and again
// does not make the agent write all the time.
constexpr Duration forgotten_after = std::chrono::minutes(30);

}  // namespace

AutoscalerHold::AutoscalerHold(asio::any_io_executor executor, const Context& context)
    : context_(context), news_(std::move(executor)) {}

std::optional<std::string> AutoscalerHold::due() const {
  if (context_.activity.must_reload()) return std::nullopt;
  return hold_patch(context_.node(), hold_duty(context_.record, context_.options.hold_autoscalers));
}

void AutoscalerHold::node_changed() {
  if (due()) news_.notify();
}

asio::awaitable<void> AutoscalerHold::establish() {
  if (!due()) co_return note_success();
  if (failures_ == 0) co_await attempt();
  if (failures_ > 0) news_.notify();
}

asio::awaitable<void> AutoscalerHold::keep() {
  Backoff errors(patience_with_errors);
  Backoff refusals(patience_with_refusals);
  TimePoint last{};
  for (;;) {
    co_await news_.wait_until(context_.clock, TimePoint::max());
    while (due()) {
      if (context_.now() - last > forgotten_after) {
        errors.reset();
        refusals.reset();
      }
      // One refusal may pass, for example right after a reconnect.
      Backoff& backoff = refused_ && failures_ > 1 ? refusals : errors;
      co_await context_.pause(backoff.next(context_.rng, std::exchange(retry_after_, {})));
      last = context_.now();
      co_await attempt();
    }
    if (!context_.activity.must_reload()) note_success();
  }
}

asio::awaitable<void> AutoscalerHold::attempt() {
  if (std::exchange(writing_, true)) co_return;
  const ScopeExit over([this] { writing_ = false; });
  Backoff backoff(after_conflict);
  std::optional<Error> last_conflict;
  for (unsigned conflicts = 0; conflicts < most_conflicts; ++conflicts) {
    const auto patch = due();
    if (!patch) co_return;
    auto patched = co_await patch_own_node(context_, *patch, attempt_limit);
    const bool gone = patched ? patched->replaced : k8s::is_gone(patched.error());
    if (gone) co_return context_.activity.interrupt_to_reload();
    if (!patched) co_return note_failure(patched.error());
    if (!patched->conflict) co_return note_success();
    last_conflict = std::move(patched->conflict);
    co_await context_.pause(backoff.next(context_.rng));
  }
  if (last_conflict) note_failure(*last_conflict);
}

void AutoscalerHold::note_failure(const Error& error) {
  ++failures_;
  refused_ = !k8s::is_transient(error) && !k8s::is_conflict(error);
  retry_after_ = error.retry_after;
  if (told_ || failures_ < 2) return;
  told_ = true;
  const bool begins = hold_duty(context_.record, context_.options.hold_autoscalers) == Duty::yes;
  context_.writer.warn(
      reason::autoscalers_not_held,
      fmt::format("the annotations that ask autoscalers to leave node {} alone cannot be {} yet, and the agent {}: {}",
                  context_.options.node, begins ? "written" : "removed",
                  begins ? "continues without them" : "tries again", error.message()));
}

void AutoscalerHold::note_success() {
  failures_ = 0;
  refused_ = told_ = false;
  retry_after_.reset();
}

}  // namespace haulout::agent
