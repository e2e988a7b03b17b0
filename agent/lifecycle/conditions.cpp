#include "agent/lifecycle/conditions.hpp"

#include <utility>

#include "base/scope_exit.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Time limit of one request. Shorter than for requests on which the update depends, because the update waits for it.
constexpr Duration attempt_limit = std::chrono::seconds(10);
// Number of patches after which an attempt ends in any case: others may write the Node all the time.
constexpr unsigned most_requests = 4;
constexpr BackoffOptions after_conflict{std::chrono::milliseconds(100), 2.0, std::chrono::seconds(1),
                                        BackoffOptions::Jitter::equal};
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
// The backoff `patience_with_others` starts again if nothing had to be restored for this time.
constexpr Duration forgotten_after = std::chrono::minutes(30);

}  // namespace

Conditions::Conditions(asio::any_io_executor executor, const AgentParts& parts, const AgentOptions& options,
                       const Record& record, const Status& status, Activity& activity, NodeView& view,
                       const RebootNeed& need)
    : clock_(parts.client.clock()),
      parts_(parts),
      options_(options),
      record_(record),
      status_(status),
      activity_(activity),
      view_(view),
      need_(need),
      news_(std::move(executor)),
      errors_(patience_with_errors),
      refusals_(patience_with_refusals),
      others_(patience_with_others) {}

void Conditions::prove(std::uint64_t doubts) {
  if (doubts != doubts_ || std::exchange(proved_, true)) return;
  changed();
}

void Conditions::withdraw_proof() {
  ++doubts_;
  if (std::exchange(proved_, false)) changed();
}

std::vector<ToldCondition> Conditions::told() const {
  return told_conditions({.node = view_.node(),
                          .record = record_,
                          .status = status_,
                          .boot_id = view_.boot_id(),
                          .needed = !need_.gone(),
                          .proved = proved_,
                          .not_before = not_before_});
}

std::optional<std::string> Conditions::due(bool beat) const {
  if (activity_.must_reload()) return std::nullopt;
  return conditions_patch(view_.node(), told(), parts_.client.server_now(), beat);
}

void Conditions::changed() {
  if (due(false)) news_.notify();
}

asio::awaitable<void> Conditions::establish() {
  if (!due(false)) co_return;
  if (!trouble_) note(co_await attempt(false));
  if (due(false)) news_.notify();
}

asio::awaitable<void> Conditions::keep() {
  const auto next_beat = [this] { return clock_.now() + parts_.rng.between(heartbeat / 2, heartbeat); };
  TimePoint beat = next_beat();
  for (;;) {
    co_await news_.wait_until(clock_, beat);
    while (due(false)) {
      co_await clock_.sleep_until(clock_.now() + pause());
      note(co_await attempt(false));
    }
    note(Result<>());
    if (clock_.now() < beat) continue;
    beat = next_beat();
    // A failed heartbeat is not repeated: the next one follows, and the conditions are true without it.
    if (due(true)) static_cast<void>(co_await attempt(true));
  }
}

Duration Conditions::pause() {
  if (trouble_) {
    Backoff& backoff = k8s::is_transient(*trouble_) || k8s::is_conflict(*trouble_) ? errors_ : refusals_;
    return backoff.next(parts_.rng, trouble_->retry_after);
  }
  if (told() == written_) {
    if (clock_.now() - std::exchange(restored_, clock_.now()) > forgotten_after) others_.reset();
    return others_.next(parts_.rng);
  }
  return !writing_ && must_withdraw_drained(view_.node(), told()) ? Duration::zero() : moment;
}

// Looks again after each write. While a patch is under way, what is true may have changed back to what the Node showed
// before; the call for that change finds nothing to write.
Task<> Conditions::attempt(bool beat) {
  if (std::exchange(writing_, true)) co_return Result<>();
  const ScopeExit over([this] { writing_ = false; });
  Backoff backoff(after_conflict);
  std::optional<Error> last_conflict;
  for (unsigned requests = 0; requests < most_requests; ++requests) {
    std::vector<ToldCondition> wanted = told();
    const auto patch = due(beat);
    if (!patch) co_return Result<>();
    std::uint64_t news = view_.news();
    auto node = co_await parts_.client.patch_node_status(options_.node, *patch, clock_.now() + attempt_limit);
    last_conflict.reset();
    if (!node && k8s::is_conflict(node.error())) {
      last_conflict = std::move(node).error();
      news = view_.news();
      node = co_await parts_.client.get_node(options_.node, clock_.now() + attempt_limit);
    }
    if (!node && !k8s::is_gone(node.error())) co_return std::move(node).error();
    if (!node || node->uid != view_.node().uid) {
      activity_.interrupt_to_reload();
      co_return Result<>();
    }
    view_.learn(*std::move(node), news);
    if (last_conflict) {
      co_await clock_.sleep_until(clock_.now() + backoff.next(parts_.rng));
      continue;
    }
    written_ = std::move(wanted);
    beat = false;
  }
  if (last_conflict) co_return *std::move(last_conflict);
  co_return Result<>();
}

void Conditions::note(const Result<>& attempted) {
  if (!attempted) {
    trouble_ = attempted.error();
    return;
  }
  trouble_.reset();
  errors_.reset();
  refusals_.reset();
}

}  // namespace haulout::agent
