#include "agent/lifecycle/side_write.hpp"

#include <fmt/format.h>

#include "agent/lifecycle/node_record.hpp"
#include "base/scope_exit.hpp"
#include "drain/reasons.hpp"
#include "k8s/status.hpp"
#include "retry/task_group.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

using side_write::after_conflict;
using side_write::attempt_limit;
using side_write::forgotten_after;
using side_write::most_requests;

// Backoff after an error that may pass, and before the mark follows a change of another client.
constexpr BackoffOptions patience_with_errors{std::chrono::seconds(2), 2.0, std::chrono::minutes(1),
                                              BackoffOptions::Jitter::equal};
// Backoff after a refusal: a policy or a right changes seldom. Also if another client undoes each write.
constexpr BackoffOptions patience_with_refusals{std::chrono::minutes(1), 2.0, std::chrono::minutes(10),
                                                BackoffOptions::Jitter::equal};

}  // namespace

SideWrite::SideWrite(asio::any_io_executor executor, const Context& context, What what)
    : context_(context), what_(std::move(what)), news_(std::move(executor)) {}

std::optional<std::string> SideWrite::due() const {
  if (context_.activity.must_reload()) return std::nullopt;
  return what_.patch(what_.duty());
}

void SideWrite::node_changed() {
  if (due()) news_.notify();
}

asio::awaitable<void> SideWrite::establish() {
  if (!due()) co_return note_success();
  if (failures_ == 0) co_await attempt();
  if (failures_ > 0) news_.notify();
}

asio::awaitable<void> SideWrite::keep() {
  Backoff errors(patience_with_errors);
  Backoff refusals(patience_with_refusals);
  TimePoint last{};
  unsigned written = 0;  // number of successes in a row
  for (;;) {
    co_await news_.wait_until(context_.clock, TimePoint::max());
    while (due()) {
      if (context_.now() - last > forgotten_after) {
        errors.reset();
        refusals.reset();
        written = 0;
      }
      // One refusal may pass, for example right after a reconnect. And one change by another client is a person's; a
      // client that changes it again and again has reasons that the agent does not know.
      const bool is_undone = failures_ == 0 && written > 1;
      Backoff& backoff = is_undone || (refused_ && failures_ > 1) ? refusals : errors;
      co_await context_.pause(backoff.next(context_.rng, std::exchange(retry_after_, {})));
      last = context_.now();
      co_await attempt();
      written = failures_ == 0 ? written + 1 : 0;
    }
    if (!context_.activity.must_reload()) note_success();
  }
}

asio::awaitable<void> SideWrite::attempt() {
  if (std::exchange(writing_, true)) co_return;
  const ScopeExit over([this] { writing_ = false; });
  Backoff backoff(after_conflict);
  std::optional<Error> last_conflict;
  for (unsigned conflicts = 0; conflicts < most_requests; ++conflicts) {
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

void SideWrite::note_failure(const Error& error) {
  ++failures_;
  refused_ = !k8s::is_transient(error) && !k8s::is_conflict(error);
  retry_after_ = error.retry_after;
  if (told_ || failures_ < 2) return;
  told_ = true;
  const bool begins = what_.duty() == Duty::yes;
  context_.writer.warn(what_.reason, fmt::format("{} cannot be {} yet, and the agent {}: {}", what_.subject,
                                                 begins ? "written" : "removed",
                                                 !begins        ? "tries again"
                                                 : what_.plural ? "continues without them"
                                                                : "continues without it",
                                                 error.message()));
}

void SideWrite::note_success() {
  failures_ = 0;
  refused_ = told_ = false;
  retry_after_.reset();
}

namespace {

SideWrite autoscaler_hold(asio::any_io_executor executor, const Context& context) {
  return SideWrite(std::move(executor), context,
                   {.duty = [&context] { return hold_duty(context.record, context.options.hold_autoscalers); },
                    .patch = [&context](Duty duty) { return hold_patch(context.node(), duty); },
                    .reason = reason::autoscalers_not_held,
                    .subject = "the annotations that ask autoscalers to leave node " + context.options.node + " alone",
                    .plural = true});
}

SideWrite waiting_taint(asio::any_io_executor executor, const Context& context) {
  const auto& wanted = context.options.waiting_taint;
  return SideWrite(
      std::move(executor), context,
      {.duty = [&context] { return waiting_taint_duty(context.record, context.options.waiting_taint.has_value()); },
       .patch =
           [&context](Duty duty) {
             return waiting_taint_patch(context.node(), duty, context.options.waiting_taint,
                                        context.client.server_now());
           },
       .reason = reason::waiting_taint_failed,
       .subject = fmt::format("the taint {}of node {}", wanted ? words_of(*wanted) + " " : std::string(),
                              context.options.node)});
}

}  // namespace

SideWrites::SideWrites(const asio::any_io_executor& executor, const Context& context)
    : context_(context), hold_(autoscaler_hold(executor, context)), taint_(waiting_taint(executor, context)) {}

asio::awaitable<void> SideWrites::establish() {
  for (SideWrite* const each : {&hold_, &taint_})
    if (!context_.activity.must_reload()) co_await each->establish();
}

void SideWrites::node_changed() {
  hold_.node_changed();
  taint_.node_changed();
}

asio::awaitable<void> SideWrites::keep() {
  co_await with_task_group([this](TaskGroup& group) {
    group.spawn(hold_.keep());
    return taint_.keep();
  });
}

}  // namespace haulout::agent
