// Everything that the agent writes to its Node.
#include <fmt/format.h>

#include "agent/gates/waiting.hpp"
#include "agent/lifecycle/agent_impl.hpp"
#include "agent/node/node_cordon.hpp"
#include "base/scope_exit.hpp"
#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Backoff after a conflict: another client has written the Node, which is common.
constexpr BackoffOptions conflict_patience{std::chrono::milliseconds(100), 2.0, std::chrono::seconds(5),
                                           BackoffOptions::Jitter::equal};
// Nothing depends on the condition, so an agent that may never write it retries only rarely.
constexpr BackoffOptions condition_patience{std::chrono::seconds(1), 2.0, std::chrono::minutes(10),
                                            BackoffOptions::Jitter::equal};
// Another client removes the agent's labels, perhaps each time. The growing backoff keeps the agent from writing all
// the time.
constexpr BackoffOptions patience_with_others{std::chrono::seconds(10), 2.0, std::chrono::minutes(10),
                                              BackoffOptions::Jitter::equal};
constexpr Duration forgotten_after = std::chrono::minutes(30);
// So many conflicts in a row take about ten seconds.
constexpr unsigned worth_a_word = 8;

}  // namespace

asio::awaitable<void> Agent::Impl::commit(Event event) {
  Moment moment;
  moment.now = wall();
  moment.boot_id = boot_id_;
  moment.pending = pending_;
  moment.requested = reboot_requested(node_);
  moment.booted = booted_;
  moment.slot = slot_;
  moment.run = new_run();
  moment.others_reboot = parts_.host.reboot_methods().empty();
  moment.cause = std::exchange(cause_, {});
  moment.cause_message = std::exchange(cause_message_, {});
  record_ = advance(std::move(record_), event, moment, options_.times);
  status_ = {record_.state, record_.cause, record_.cause_message, record_.since, record_.judged};
  if (const auto cordon = persons_cordon(node_); cordon && record_.state == State::uncordoning)
    status_.message = "verification passed; the node stays " + words_of(*cordon);
  // Removes the ready file before the write, not after the API server has accepted it.
  if (!duties_of(record_.state).shows_ready) show_ready(false);
  // A boot serves the request, whatever caused the boot. A failed reboot ends the request, too, so that it does not
  // cause one attempt after another.
  const bool served = event == Event::boot_changed || event == Event::reboot_impossible || event == Event::boot_unknown;
  shutdown_news_->notify();
  if (co_await write(served)) parts_.tell(status_);
}

asio::awaitable<void> Agent::Impl::show(std::string reason, std::string message) {
  const Status status{record_.state, std::move(reason), std::move(message), record_.since, record_.judged};
  record_.pool = options_.pool(node_);
  if (status == status_ && written_ == encoded()) co_return;
  const bool news = status != status_;
  status_ = status;
  if (!co_await write() || !news) co_return;
  parts_.tell(status_);
  co_await show_condition();
}

asio::awaitable<void> Agent::Impl::show_beside(std::string reason, std::string message) {
  to_show_ = {std::move(reason), std::move(message)};
  if (std::exchange(showing_, true)) co_return;
  const ScopeExit over([this] { showing_ = false; });
  while (to_show_) {
    auto [next_reason, next_message] = *std::exchange(to_show_, std::nullopt);
    co_await show(std::move(next_reason), std::move(next_message));
  }
}

asio::awaitable<bool> Agent::Impl::write(bool request_served) {
  Backoff backoff(patience);
  Backoff after_conflicts(conflict_patience);
  bool failed_before = false;
  unsigned conflicts = 0;
  while (!reload_) {
    if (has_foreign_record()) {
      reload_ = foreign_ = true;
      break;
    }
    const auto patch = status_patch(node_, record_, status_, pending_.need, request_served);
    if (!patch) {
      written_ = encoded();
      tell_written();
      co_return true;
    }
    sent_ = encoded();
    std::uint64_t news = node_news_;
    auto node = co_await client_.patch_node(options_.node, *patch, k8s::DryRun::none, within(request_timeout));
    if (!node && k8s::is_conflict(node.error())) {
      if (++conflicts == worth_a_word) tell_unwritten(node.error());
      news = node_news_;
      node = co_await client_.get_node(options_.node, within(request_timeout));
      if (node) {
        reload_ = node->uid != node_.uid;
        learn(std::move(*node), news);
        co_await clock_.sleep_until(now() + after_conflicts.next(rng_));
        continue;
      }
    }
    if (node) {
      reload_ = node->uid != node_.uid;
      learn(std::move(*node), news);
      written_ = sent_;
      if (!reload_) tell_written();
      co_return !reload_;
    }
    reload_ = k8s::is_gone(node.error());
    if (reload_) break;
    // One failure right after a reconnect is not worth a message, so the agent reports failures from the second on.
    if (std::exchange(failed_before, true)) tell_unwritten(node.error());
    co_await clock_.sleep_until(now() + backoff.next(rng_, node.error().retry_after));
  }
  co_return false;
}

// Reports the state that the Node still shows, because a new state counts only after it was written.
void Agent::Impl::tell_unwritten(const Error& error) {
  unwritten_ = true;
  Status status = shown_status(node_, record_of(node_).value_or(Record{}));
  status.reason = k8s::is_transient(error) ? reason::api_unavailable : reason::node_not_written;
  status.message = fmt::format("the agent cannot write node {}, so it stays in state {}: {}", options_.node,
                               to_string(status.state), error.message());
  parts_.tell(status);
}

void Agent::Impl::tell_written() {
  if (std::exchange(unwritten_, false)) parts_.tell(status_);
}

asio::awaitable<void> Agent::Impl::show_condition() {
  condition_trouble_.reset();
  auto written = co_await write_condition();
  if (written) co_return;
  condition_trouble_ = std::move(written).error();
  condition_news_->notify();
}

Task<> Agent::Impl::write_condition() {
  // Looks twice: during the first patch the status may have changed, while a concurrent call still found nothing to
  // write.
  for (int look = 0; look < 2; ++look) {
    const auto patch = condition_patch(node_, in_maintenance(record_), status_, client_.server_now());
    if (!patch) break;
    const std::uint64_t news = node_news_;
    CO_TRY(auto node, co_await client_.patch_node_status(options_.node, *patch, within(request_timeout)));
    if (node.uid == node_.uid) learn(std::move(node), news);
  }
  co_return Result<>();
}

asio::awaitable<void> Agent::Impl::retry_condition() {
  for (;;) {
    Backoff backoff(condition_patience);
    while (condition_trouble_) {
      co_await clock_.sleep_until(now() + backoff.next(rng_, condition_trouble_->retry_after));
      if (condition_trouble_) co_await show_condition();
    }
    co_await condition_news_->wait_until(clock_, TimePoint::max());
  }
}

asio::awaitable<void> Agent::Impl::be_heard() {
  for (;;) {
    co_await clock_.sleep_until(now() + rng_.between(heartbeat / 2, heartbeat));
    // The agent does not retry a failed heartbeat; the next heartbeat follows, and the condition is correct without it.
    // If the Node cannot be written at all, other coroutines already retry.
    if (in_maintenance(record_) && !condition_trouble_ && !unwritten_) (void)co_await write_condition();
  }
}

// Returns nothing while the agent itself is writing: then the Node has an older record, or will get a new one.
std::optional<std::string> Agent::Impl::what_was_taken() const {
  if (reload_ || !answered_ || written_.empty() || written_ != encoded() || shown_record(node_) != written_)
    return std::nullopt;
  return status_patch(node_, record_, status_, pending_.need, false);
}

asio::awaitable<void> Agent::Impl::keep_shown() {
  Backoff backoff(patience_with_others);
  TimePoint last{};
  std::optional<std::chrono::milliseconds> retry_after;
  for (;;) {
    co_await node_moved_->wait_until(clock_, TimePoint::max());
    while (what_was_taken()) {
      if (now() - last > forgotten_after) backoff.reset();
      co_await clock_.sleep_until(now() + backoff.next(rng_, std::exchange(retry_after, {})));
      last = now();
      const auto patch = what_was_taken();
      if (!patch) break;
      const std::uint64_t news = node_news_;
      auto node = co_await client_.patch_node(options_.node, *patch, k8s::DryRun::none, within(request_timeout));
      if (!node)
        retry_after = node.error().retry_after;
      else if (node->uid == node_.uid)
        learn(*std::move(node), news);
    }
  }
}

}  // namespace haulout::agent
