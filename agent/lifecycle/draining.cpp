// From the slot to the drained node.
#include "agent/gates/waiting.hpp"
#include "agent/lifecycle/agent_impl.hpp"
#include "base/scope_exit.hpp"
#include "drain/cordon.hpp"
#include "drain/pod_filter.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// How often a running drain writes its progress to the Node.
constexpr Duration status_interval = std::chrono::seconds(15);
// Time limit for the update tool, which downloads an image and writes it to the disk.
constexpr Duration apply_limit = std::chrono::hours(1);

}  // namespace

asio::awaitable<Event> Agent::Impl::drain() {
  if (rebooted()) co_return Event::boot_changed;
  // The node was uncordoned while no agent was running. `kubectl uncordon` does not remove the mark of this run.
  const auto mark = drain::mark_of(node_);
  const bool stood = record_.cordoned || (mark && mark->run == record_.run);
  if (stood && !node_.unschedulable) co_return uncordoned_by_somebody();
  cordoned_ = false;
  cordon_seen_ = stood;
  held_up_.reset();
  left_alone_.clear();
  // A pause may have been set while no agent was running.
  const Result<bool> paused = co_await given_up();
  if (paused && *paused) co_return Event::gate_closed;
  drain_status_.begin();
  co_await with_task_group([this](TaskGroup& group) { return watched_drain(group); });
  learn_leaked();
  drain_.reset();
  co_return decided_.value_or(Event::drain_ended);
}

asio::awaitable<void> Agent::Impl::watched_drain(TaskGroup& group) {
  group.spawn(follow_turn());
  group.spawn(follow_pauses());
  confirmed_ = false;
  group.spawn(confirm_turn());
  co_await turn_confirmed();
  if (interrupted()) co_return;
  placed_ = record_.to.empty();
  if (!placed_) group.spawn(put_update_in_place());
  co_await update_in_place();
  if (interrupted()) co_return;
  const Hooks before = co_await pass_hooks(HookPoint::before_drain);
  if (before == Hooks::failed) decided_ = Event::drain_ended;
  if (before != Hooks::passed) co_return;
  const TaskGroup::ChildId child = group.spawn(run_drain());
  stop_drain_ = [&group, child] { group.cancel(child); };
  const ScopeExit over([this] { stop_drain_ = nullptr; });
  TimePoint shown = now() - status_interval;
  while (!reload_ && !decided_) {
    decided_ = drain_interrupted();
    if (decided_) break;
    shown = co_await show_drain(shown);
    if (!decided_) co_await wait(std::max(now() + std::chrono::milliseconds(100), shown + status_interval));
  }
  if (reload_ || decided_ != Event::drained) co_return;
  const Hooks after = co_await pass_hooks(HookPoint::after_drain);
  if (after == Hooks::failed) decided_ = Event::drain_ended;
}

// Installs the update before the first eviction: if the installation fails, no pod is evicted for nothing. After a
// crash it runs again, at no cost if it was done before.
asio::awaitable<void> Agent::Impl::put_update_in_place() {
  auto placed = co_await parts_.backend.apply(record_.to, within(apply_limit));
  placed_ = true;
  if (!placed) {
    cause_ = reason::apply_failed;
    cause_message_ = "version " + record_.to + " could not be installed: " + placed.error().message();
    decided_ = Event::drain_ended;
  }
  changed_->notify();
}

// Most systems have installed the update before they report the need for a reboot. So this shows a message only if the
// installation takes more than two seconds.
asio::awaitable<void> Agent::Impl::update_in_place() {
  const TimePoint worth_a_word = now() + std::chrono::seconds(2);
  while (!placed_ && !interrupted()) {
    if (now() >= worth_a_word)
      co_await show(reason::applying_update, "version " + record_.to + " is being installed for the next boot");
    co_await wait(now() < worth_a_word ? worth_a_word : TimePoint::max());
  }
}

void Agent::Impl::decide(Event event) {
  decided_ = event;
  show_ready(false);
  if (stop_drain_) stop_drain_();
  changed_->notify();
}

std::optional<Event> Agent::Impl::drain_interrupted() {
  cordon_seen_ = cordon_seen_ || (cordoned_ && node_.unschedulable);
  // The agent's own watch may have been interrupted while the cordon was in force. The drain knows since when the node
  // has been cordoned, so the agent uses its diagnosis, too.
  const bool lost = uncordoned_meanwhile(findings()) && !node_.unschedulable;
  if (!lost && (!cordon_seen_ || node_.unschedulable)) return std::nullopt;
  return uncordoned_by_somebody();
}

Event Agent::Impl::uncordoned_by_somebody() {
  cause_ = reason::uncordoned;
  cause_message_ = "the node was uncordoned during its update";
  return Event::cordon_lost;
}

Findings Agent::Impl::findings() const {
  return drain_ ? drain_->diagnoses() : Findings();
}

// Shows a new reason at once, and progress at intervals.
asio::awaitable<TimePoint> Agent::Impl::show_drain(TimePoint shown_last) {
  const Findings found = findings();
  std::string reason = held_up_ ? held_up_->first : drain_status_.reason(found);
  const bool stands = cordoned_ && !record_.cordoned;
  if (stands) record_.cordoned = true;
  const bool due = learn_leaked() || stands || reason != status_.reason || now() >= shown_last + status_interval;
  if (!due) co_return shown_last;
  co_await show(std::move(reason), held_up_ ? held_up_->second : drain_status_.message(found));
  co_return now();
}

// Stores the leaked volumes for the process after a crash: it cannot find out which volumes the pods used that were
// deleted before.
bool Agent::Impl::learn_leaked() {
  if (!drain_ || record_.leaked == drain_->leaked()) return false;
  record_.leaked = drain_->leaked();
  return true;
}

asio::awaitable<void> Agent::Impl::confirm_turn() {
  Backoff backoff({std::chrono::seconds(1), 2.0, std::chrono::seconds(30), BackoffOptions::Jitter::equal});
  while (!confirmed_ && !decided_) {
    auto turn = co_await parts_.slots.confirm(within(request_timeout));
    held_up_.reset();
    if (turn && turn->ours)
      confirmed_ = true;
    else if (turn)
      decided_ = Event::turn_lost;
    else
      held_up_ = {reason::slots_unavailable, turn.error().message()};
    changed_->notify();
    if (!turn) co_await clock_.sleep_until(now() + backoff.next(rng_, turn.error().retry_after));
  }
}

asio::awaitable<void> Agent::Impl::turn_confirmed() {
  while (!confirmed_ && !interrupted()) {
    if (held_up_) co_await show(held_up_->first, held_up_->second);
    co_await wait(TimePoint::max());
  }
}

asio::awaitable<void> Agent::Impl::run_drain() {
  // After a restart or a long hook the slot may be lost. Without it nothing is evicted.
  confirmed_ = false;
  co_await confirm_turn();
  if (!confirmed_) co_return;
  drain::Options options = options_.drain;
  options.run_id = record_.run;
  options.cordoned_by = cordoned_by;
  options.pinned_controllers = record_.pinned;
  options.restore_cordon_on_failure = false;  // the next state does that
  drain_ = std::make_unique<drain::Drain>(client_, rng_, drain_status_, options, options_.node);
  drain_->expect_leaked(record_.leaked);
  bool goes_on = co_await drain_->preflight();
  if (goes_on) goes_on = co_await drain_->cordon();
  if (goes_on) {
    cordoned_ = true;
    co_await leave_load_balancers();
    static_cast<void>(co_await drain_->evict());
  }
  const drain::Report report = drain_->report();
  for (const drain::PodReport& pod : report.pods) {
    if (pod.outcome != drain::PodOutcome::skipped || pod.reason == drain::left_by_labels) continue;
    if (pod.reason == reason::pod_pinned)
      record_.pinned.insert(pod.ns + "/" + pod.controller);
    else
      left_alone_.insert(pod.uid);
  }
  if (report.outcome == drain::Outcome::node_gone) {
    reload_ = true;
  } else if (!decided_) {
    decided_ = report.outcome == drain::Outcome::drained ? Event::drained : Event::drain_ended;
    cause_ = report.outcome == drain::Outcome::blocked ? reason::drain_blocked : reason::drain_failed;
    cause_message_ = report.message;
  }
  changed_->notify();
}

}  // namespace haulout::agent
