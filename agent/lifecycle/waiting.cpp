// From the need for a reboot to the slot.
#include <fmt/chrono.h>

#include "agent/lifecycle/agent_impl.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// A node that waits for a slot asks its gates again after one to two of these intervals, so it notices the end of a
// window.
constexpr Duration line_look = std::chrono::minutes(5);
// The wall clock may be set forward. So the longest wait for a time of day is this interval, and then the agent looks
// at the clock again.
constexpr Duration clock_look = std::chrono::minutes(10);

}  // namespace

asio::awaitable<Event> Agent::Impl::wait_for_answer() {
  co_await first_answer();
  while (!reload_ && pending_.need == Need::unknown && !reboot_requested(node_)) {
    if (!pending_.problem.empty()) co_await show(reason::backend_unknown, pending_.problem);
    co_await wait(TimePoint::max());
  }
  co_return Event::answered;
}

asio::awaitable<Event> Agent::Impl::wait_for_need() {
  co_await first_answer();
  while (!reload_ && !wanted()) {
    TimePoint until = TimePoint::max();
    const auto foreign = foreign_boot(until);
    if (foreign && foreign->reason == reason::boot_id_foreign) {
      co_await show(foreign->reason, foreign->message);
    } else if (pending_.need == Need::unknown) {
      co_await show(reason::backend_unknown, pending_.problem);
    } else if (pending_.need == Need::yes) {
      co_await show(reason::rolled_back,
                    "version " + pending_.target + " was rolled back on this node, so the agent does not try it again");
    } else {
      note_no_need(record_);
      co_await show({}, {});
    }
    co_await wait(until);
  }
  co_return Event::needed;
}

asio::awaitable<Event> Agent::Impl::wait_for_gates() {
  co_await first_answer();
  while (!reload_) {
    if (!wanted() && pending_.need != Need::unknown) co_return Event::not_needed;
    TimePoint until = TimePoint::max();
    // A clock that was ahead may have written this time. So the wait is limited to the longest backoff.
    const WallTime latest = wall() + std::chrono::duration_cast<WallTime::duration>(options_.times.backoff_cap);
    if (record_.not_before) record_.not_before = std::min(*record_.not_before, latest);
    const Asked asked = asked_now();
    const GateAnswer gates = co_await ask_gates(GateQuestion::When::before_turn);
    if (const Gate* brake = gates.closed_with(Gate::Effect::degrades)) {
      cause_ = brake->reason;
      cause_message_ = brake->message;
      co_return Event::brake;
    }
    if (const auto foreign = foreign_boot(until)) {
      co_await show(foreign->reason, foreign->message);
    } else if (!gates.open()) {
      if (const auto again = gates.look_again()) until = at(*again, clock_look);
      co_await show(gates.reason(), gates.message());
    } else if (record_.not_before && *record_.not_before > wall()) {
      until = at(*record_.not_before, options_.times.backoff_cap);
      co_await show(
          reason::backing_off,
          fmt::format("{} failed{}: {}; next attempt at {}", count_of(record_.failures, "attempt"),
                      record_.failures == 1 ? "" : ", the last one with", record_.cause_message,
                      fmt::format("{:%FT%TZ}", std::chrono::floor<std::chrono::seconds>(*record_.not_before))));
    } else {
      const Result<> known = co_await learn_version();
      // If another program reboots the machine, the agent needs no permission to do so.
      const Result<> can =
          parts_.host.reboot_methods().empty() ? Result<>() : co_await parts_.host.can_reboot(within(request_timeout));
      if (known && can) co_return Event::gates_open;
      until = now() + std::chrono::minutes(5);
      co_await show(known ? reason::cannot_reboot : reason::backend_unknown, (known ? can : known).error().message());
    }
    co_await wait_at_gates(asked, until);
  }
  co_return Event::not_needed;
}

Task<> Agent::Impl::learn_version() {
  auto version = co_await parts_.backend.booted(within(request_timeout));
  if (!version) co_return std::move(version).error();
  booted_ = *std::move(version);
  co_return Result<>();
}

asio::awaitable<Event> Agent::Impl::wait_for_turn() {
  co_await first_answer();
  // A new process asks for the version again. A node that cannot report its version must not hold a slot.
  const Result<> known = co_await learn_version();
  if (!known) co_return Event::gate_closed;
  Backoff backoff({std::chrono::seconds(1), 2.0, std::chrono::seconds(30), BackoffOptions::Jitter::equal});
  turns_moved_ = true;
  while (!reload_) {
    if (!wanted()) co_return Event::not_needed;
    const Asked asked = asked_now();
    if (!(co_await ask_gates(GateQuestion::When::before_turn)).open()) co_return Event::gate_closed;
    if (turns_moved_) {
      const auto decided = co_await ask_for_turn(backoff, asked);
      if (decided) co_return *decided;
    }
    if (!turns_moved_) co_await stay_in_line();
  }
  co_return Event::not_needed;
}

// Returns nothing if there is no slot yet; then `turns_moved_` says whether to ask again.
asio::awaitable<std::optional<Event>> Agent::Impl::ask_for_turn(Backoff& backoff, Asked asked) {
  auto turn = co_await parts_.slots.take(within(std::chrono::minutes(2)));
  if (turn && !turn->ours) {
    backoff.reset();
    turns_moved_ = false;
    co_await show(reason::waiting_for_slot, turn->why);
    co_return std::nullopt;
  }
  if (!turn) {
    co_await show(reason::slots_unavailable, turn.error().message());
    co_await clock_.sleep_until(now() + backoff.next(rng_, turn.error().retry_after));
    // The Node lacks something that only a person can add, for example a label.
    if (turn.error().code() == Errc::invalid)
      co_await wait_at_gates(std::move(asked), now() + rng_.between(line_look, 2 * line_look));
    co_return std::nullopt;
  }
  slot_ = turn->slot;
  returned_.clear();
  // Taking the slot took time, so the need and the gates are checked again.
  if (!wanted()) co_return Event::not_needed;
  const GateAnswer again = co_await ask_gates(GateQuestion::When::with_turn);
  co_return again.open() ? Event::turn_taken : Event::gate_closed;
}

asio::awaitable<void> Agent::Impl::stay_in_line() {
  co_await with_task_group([this](TaskGroup& group) {
    group.spawn(follow_turn());
    group.spawn(follow_gates());
    return until_line_moves(asked_now().words, now() + rng_.between(line_look, 2 * line_look));
  });
}

asio::awaitable<void> Agent::Impl::until_line_moves(Words before, TimePoint until) {
  gates_moved_ = false;
  while (!reload_ && !turns_moved_ && !gates_moved_ && wanted() && now() < until) {
    co_await wait(until);
    if (asked_now().words == before) continue;
    turns_moved_ = true;  // the Node's pool may have changed
    break;
  }
}

// Wakes the loop when slots change, and detects the loss of the node's own slot.
asio::awaitable<void> Agent::Impl::follow_turn() {
  const bool holding = duties_of(record_.state).turn == Duty::yes;
  Backoff backoff({std::chrono::seconds(1), 2.0, std::chrono::seconds(30), BackoffOptions::Jitter::equal});
  for (;;) {
    co_await parts_.slots.changed();
    Duration pause = std::chrono::milliseconds(200);
    if (holding) {
      auto turn = co_await parts_.slots.confirm(within(request_timeout));
      if (turn && !turn->ours) decide(Event::turn_lost);
      if (turn)
        backoff.reset();
      else
        pause = backoff.next(rng_, turn.error().retry_after);
    }
    turns_moved_ = true;
    changed_->notify();
    co_await clock_.sleep_until(now() + pause);
  }
}

}  // namespace haulout::agent
