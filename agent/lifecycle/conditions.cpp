#include "agent/lifecycle/conditions.hpp"

#include <algorithm>
#include <utility>

#include "agent/lifecycle/side_write.hpp"
#include "base/scope_exit.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

using side_write::after_conflict;
using side_write::attempt_limit;
using side_write::forgotten_after;
using side_write::most_requests;

// The moment in which a state writes the conditions itself.
constexpr Duration moment = std::chrono::seconds(1);
// Backoff after an error that may pass.
constexpr BackoffOptions patience_with_errors{std::chrono::seconds(1), 2.0, std::chrono::minutes(1),
                                              BackoffOptions::Jitter::equal};
// Backoff after a refusal: a policy or a right changes seldom.
constexpr BackoffOptions patience_with_refusals{std::chrono::seconds(1), 2.0, std::chrono::minutes(10),
                                                BackoffOptions::Jitter::equal};
// Backoff for conditions that another client removes or changes, perhaps each time that the agent restores them.
constexpr BackoffOptions patience_with_others{std::chrono::seconds(10), 2.0, std::chrono::minutes(10),
                                              BackoffOptions::Jitter::equal};

}  // namespace

Conditions::Retry::Retry() : errors(patience_with_errors), refusals(patience_with_refusals) {}

void Conditions::Retry::failed(Rng& rng, TimePoint now, const Error& error) {
  failing = true;
  Backoff& backoff = k8s::is_transient(error) || k8s::is_conflict(error) ? errors : refusals;
  at = now + backoff.next(rng, error.retry_after);
}

void Conditions::Retry::over() {
  failing = false;
  at = {};
  errors.reset();
  refusals.reset();
}

Conditions::Conditions(asio::any_io_executor executor, const AgentParts& parts, Activity& activity, NodeView& view,
                       const RebootNeed& need)
    : clock_(parts.client.clock()),
      parts_(parts),
      activity_(activity),
      view_(view),
      need_(need),
      news_(std::move(executor)),
      others_(patience_with_others) {}

void Conditions::shows(const Record& record, const Status& status) {
  record_ = record;
  status_ = status;
}

void Conditions::take_over(const Record& record, const Status& status) {
  shows(record, status);
  written_.reset();
  may_show_drained_ = true;
  writes_.over();
  withdrawals_.over();
  // The duties of the state withdraw it first.
  withdrawals_.at = clock_.now() + moment;
  changed();
}

void Conditions::prove(std::uint64_t doubts) {
  if (doubts != doubts_ || std::exchange(proved_, true)) return;
  changed();
}

void Conditions::withdraw_proof() {
  ++doubts_;
  if (std::exchange(proved_, false)) changed();
}

void Conditions::expect(std::optional<WallTime> not_before) {
  not_before_ = not_before;
  changed();
}

std::vector<ToldCondition> Conditions::told() const {
  return told_conditions({.node = view_.node(),
                          .record = record_,
                          .status = status_,
                          .boot_id = view_.boot_id(),
                          .needed = !need_.gone(),
                          .proved = proved_,
                          .gates_asked = not_before_.has_value(),
                          .not_before = not_before_.value_or(std::nullopt)});
}

std::optional<std::string> Conditions::due(bool beat) const {
  if (only_withdraws()) return drained_withdrawal(view_.node());
  if (activity_.must_reload()) return std::nullopt;
  return conditions_patch(view_.node(), told(), parts_.client.server_now(), beat);
}

bool Conditions::is_due() const {
  if (only_withdraws()) return true;
  return !activity_.must_reload() && !shows_conditions(view_.node(), told(), parts_.client.server_now(), false);
}

void Conditions::changed() {
  if (is_due()) news_.notify();
}

asio::awaitable<void> Conditions::establish() {
  if (!is_due()) co_return;
  if (!writing_ && !writes_.failing && !others_write()) co_await write(false);
  if (is_due()) news_.notify();
}

asio::awaitable<void> Conditions::keep() {
  // Two of these intervals are no longer than `heartbeat`, and a condition is renewed when half of that has passed.
  const auto next_beat = [this] { return clock_.now() + parts_.rng.between(heartbeat / 4, heartbeat / 2); };
  TimePoint beat = next_beat();
  for (;;) {
    // After an attempt of a state the loop is woken.
    co_await news_.wait_until(clock_, writing_ ? TimePoint::max() : std::min(beat, next_write()));
    if (writing_) continue;
    const bool beats = clock_.now() >= beat;
    if (beats) beat = next_beat();
    // A failed heartbeat is not repeated: the next one follows, and the conditions are true without it.
    const bool silent = beats && !writes_.failing && due(true) != due(false);
    if (silent || clock_.now() >= next_write()) co_await write(beats);
  }
}

TimePoint Conditions::next_write() {
  const bool writes = is_due();
  const bool restores = writes && others_write();
  if (!restores) restore_at_.reset();
  if (!writes || restores) write_at_.reset();
  if (!writes) {
    writes_.over();
    return TimePoint::max();
  }
  if (may_show_drained_ && must_withdraw()) return withdrawals_.at;
  if (writes_.failing) return writes_.at;
  if (!restores) {
    if (!write_at_) write_at_ = clock_.now() + moment;
    return *write_at_;
  }
  if (!restore_at_) {
    if (clock_.now() - std::exchange(restored_, clock_.now()) > forgotten_after) others_.reset();
    restore_at_ = clock_.now() + others_.next(parts_.rng);
  }
  return *restore_at_;
}

asio::awaitable<void> Conditions::write(bool beat) {
  const auto attempted = co_await attempt(beat);
  const bool stays = may_show_drained_ && must_withdraw();
  if (attempted) {
    writes_.over();
    if (!stays) withdrawals_.over();
    co_return;
  }
  writes_.failed(parts_.rng, clock_.now(), attempted.error());
  if (stays || attempted.error().retry_after) withdrawals_.failed(parts_.rng, clock_.now(), attempted.error());
}

// Looks again after each write. While a patch is under way, what is true may have changed back to what the Node showed
// before; the call for that change finds nothing to write.
Task<> Conditions::attempt(bool beat) {
  writing_ = true;
  const ScopeExit over([this] {
    writing_ = false;
    news_.notify();
  });
  Backoff backoff(after_conflict);
  std::optional<Error> last_conflict;
  for (unsigned requests = 0; requests < most_requests; ++requests) {
    std::vector<ToldCondition> wanted = told();
    const bool withdraws = only_withdraws();
    const auto patch = due(beat);
    if (!patch) co_return Result<>();
    if (is_told(drained_condition, wanted)) may_show_drained_ = true;
    std::uint64_t news = view_.news();
    auto node = co_await parts_.client.patch_node_status(view_.name(), *patch, clock_.now() + attempt_limit);
    last_conflict.reset();
    if (!node && k8s::is_conflict(node.error())) {
      last_conflict = std::move(node).error();
      news = view_.news();
      node = co_await parts_.client.get_node(view_.name(), clock_.now() + attempt_limit);
    }
    if (!node || node->uid != view_.node().uid) {
      if (node || k8s::is_gone(node.error())) activity_.interrupt_to_reload();
      co_return node ? Error(Errc::invalid, "node " + view_.name() + " was replaced") : std::move(node).error();
    }
    view_.learn(*std::move(node), news);
    if (last_conflict) {
      co_await clock_.sleep_until(clock_.now() + backoff.next(parts_.rng));
      continue;
    }
    may_show_drained_ = is_told(drained_condition, wanted);
    if (withdraws) continue;
    written_ = std::move(wanted);
    beat = false;
    // If the Node differs from what was just written, another program changes it, so it is restored only later.
    if (others_write()) break;
  }
  if (last_conflict) co_return *std::move(last_conflict);
  co_return Result<>();
}

}  // namespace haulout::agent
