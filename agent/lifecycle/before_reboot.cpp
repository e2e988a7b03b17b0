// From the need to the empty node.
#include <fmt/chrono.h>

#include "agent/gates/pause.hpp"
#include "agent/lifecycle/agent_impl.hpp"
#include "agent/text.hpp"
#include "drain/cordon.hpp"
#include "k8s/entries.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// How often a drain under way writes how far it is.
constexpr Duration status_interval = std::chrono::seconds(15);
// A window that ends while the node is in line is noticed so soon.
constexpr Duration line_look = std::chrono::minutes(5);
// The tool of the system downloads an image and writes it.
constexpr Duration apply_limit = std::chrono::hours(1);

// The wall clock may be put forward: a time of the day is looked at this often until it comes.
constexpr Duration clock_look = std::chrono::minutes(10);

using Entries = std::map<std::string, std::string>;

// Labels, which say where the node belongs, and annotations of people.
Entries words_of_others(const k8s::Node& node) {
  Entries words;
  for (const auto& [key, value] : node.labels)
    if (key != state_label && key != reason_label && key != reboot_required_label) words.emplace(key, value);
  for (const std::string_view key : {pause_annotation, request_annotation})
    if (const auto value = k8s::value_at(node.annotations, key)) words.emplace(key, *value);
  return words;
}

}  // namespace

asio::awaitable<Event> Agent::Impl::wait_for_answer() {
  co_await first_answer();
  while (!reload_ && pending_.need == Need::unknown && !reboot_requested(node_)) {
    if (!pending_.problem.empty()) co_await show("BackendUnknown", pending_.problem);
    co_await wait(TimePoint::max());
  }
  co_return Event::answered;
}

asio::awaitable<Event> Agent::Impl::wait_for_need() {
  co_await first_answer();
  while (!reload_ && !wanted()) {
    if (pending_.need == Need::unknown) {
      co_await show("BackendUnknown", pending_.problem);
    } else if (pending_.need == Need::yes) {
      co_await show("RolledBack",
                    "version " + pending_.target + " was rolled back on this node and is not tried again");
    } else {
      note_no_need(record_);
      co_await show({}, {});
    }
    co_await wait(TimePoint::max());
  }
  co_return Event::needed;
}

asio::awaitable<Event> Agent::Impl::wait_for_gates() {
  co_await first_answer();
  while (!reload_) {
    if (!wanted() && pending_.need != Need::unknown) co_return Event::not_needed;
    TimePoint until = TimePoint::max();
    // Written by a clock that was ahead: no wait is longer than the longest that there is.
    const WallTime latest = wall() + std::chrono::duration_cast<WallTime::duration>(options_.times.backoff_cap);
    if (record_.not_before) record_.not_before = std::min(*record_.not_before, latest);
    const GateAnswer gates = co_await ask_gates(GateQuestion::When::before_turn);
    if (const Gate* brake = gates.closed_with(Gate::Effect::degrades)) {
      cause_ = brake->reason;
      cause_message_ = brake->message;
      co_return Event::brake;
    }
    if (!gates.open()) {
      if (const auto again = gates.look_again()) until = at(*again, clock_look);
      co_await show(gates.reason(), gates.message());
    } else if (record_.not_before && *record_.not_before > wall()) {
      until = at(*record_.not_before, options_.times.backoff_cap);
      co_await show(
          "BackingOff",
          fmt::format("{} came to nothing{}: {}; the next one follows {}", count_of(record_.failures, "attempt"),
                      record_.failures == 1 ? "" : ", the last one", record_.cause_message,
                      fmt::format("{:%FT%TZ}", std::chrono::floor<std::chrono::seconds>(*record_.not_before))));
    } else {
      // Somebody else's reboot needs no rights of ours.
      auto can =
          parts_.host.reboot_methods().empty() ? Result<>() : co_await parts_.host.can_reboot(within(request_timeout));
      if (can) co_return Event::gates_open;
      until = now() + std::chrono::minutes(5);
      co_await show("CannotReboot", can.error().message());
    }
    co_await wait_at_gates(until);
  }
  co_return Event::not_needed;
}

asio::awaitable<Event> Agent::Impl::wait_for_turn() {
  co_await first_answer();
  Backoff backoff({std::chrono::seconds(1), 2.0, std::chrono::seconds(30), BackoffOptions::Jitter::equal});
  turns_moved_ = true;
  while (!reload_) {
    if (!wanted()) co_return Event::not_needed;
    if (!(co_await ask_gates(GateQuestion::When::before_turn)).open()) co_return Event::gate_closed;
    if (turns_moved_) {
      const auto decided = co_await ask_for_turn(backoff);
      if (decided) co_return *decided;
    }
    if (!turns_moved_) co_await stay_in_line();
  }
  co_return Event::not_needed;
}

// Nothing: not yet; turns_moved_ says whether to ask again.
asio::awaitable<std::optional<Event>> Agent::Impl::ask_for_turn(Backoff& backoff) {
  auto turn = co_await parts_.slots.take(within(std::chrono::minutes(2)));
  if (turn && !turn->ours) {
    backoff.reset();
    turns_moved_ = false;
    co_await show("WaitingForSlot", turn->why);
    co_return std::nullopt;
  }
  if (!turn) {
    co_await show("SlotsUnavailable", turn.error().message());
    co_await clock_.sleep_until(now() + backoff.next(rng_, turn.error().retry_after));
    co_return std::nullopt;
  }
  slot_ = turn->slot;
  auto version = co_await parts_.backend.booted(within(request_timeout));
  if (!version) {
    co_await show("BackendUnknown", version.error().message());
    co_await clock_.sleep_until(now() + backoff.next(rng_));
    co_return std::nullopt;
  }
  booted_ = *version;
  // It took a while: what was asked before the turn came may have changed.
  if (!wanted()) co_return Event::not_needed;
  const GateAnswer again = co_await ask_gates(GateQuestion::When::with_turn);
  co_return again.open() ? Event::turn_taken : Event::gate_closed;
}

asio::awaitable<void> Agent::Impl::stay_in_line() {
  co_await with_task_group([this](TaskGroup& group) {
    group.spawn(follow_turn());
    group.spawn(follow_gates());
    return until_line_moves(words_of_others(node_), now() + rng_.between(line_look, 2 * line_look));
  });
}

// What this agent itself writes to its Node, and what the kubelet reports there, changes nothing.
asio::awaitable<void> Agent::Impl::until_line_moves(Entries before, TimePoint until) {
  gates_moved_ = false;
  while (!reload_ && !turns_moved_ && !gates_moved_ && wanted() && now() < until) {
    co_await wait(until);
    const Entries after = words_of_others(node_);
    if (after == before) continue;
    turns_moved_ = true;  // the node may have come into another pool
    break;
  }
}

// Wakes the loop when the turns change, and notices when ours is lost.
asio::awaitable<void> Agent::Impl::follow_turn() {
  const bool holding = duties_of(record_.state).turn == Duty::yes;
  Backoff backoff({std::chrono::seconds(1), 2.0, std::chrono::seconds(30), BackoffOptions::Jitter::equal});
  for (;;) {
    co_await parts_.slots.changed();
    Duration pause = std::chrono::milliseconds(200);
    if (holding) {
      auto turn = co_await parts_.slots.confirm(within(request_timeout));
      if (turn && !turn->ours) decided_ = Event::turn_lost;
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

asio::awaitable<Event> Agent::Impl::drain() {
  if (rebooted()) co_return Event::boot_changed;
  // Uncordoned while no agent was there to see it: the field has gone, the mark of this run has not.
  const auto mark = drain::mark_of(node_);
  if (mark && mark->run == record_.run && !node_.unschedulable) co_return uncordoned_by_somebody();
  cordoned_ = cordon_seen_ = false;
  lb_waiting_.reset();
  left_alone_.clear();
  // A pause may have come while no agent was there to see it.
  const Result<bool> paused = co_await given_up();
  if (paused && *paused) co_return Event::gate_closed;
  drain_status_.begin();
  drain_.reset();
  co_await with_task_group([this](TaskGroup& group) { return watched_drain(group); });
  learn_leaked();
  drain_.reset();
  co_return decided_.value_or(Event::drain_ended);
}

asio::awaitable<void> Agent::Impl::watched_drain(TaskGroup& group) {
  group.spawn(follow_turn());
  group.spawn(follow_pauses());
  const bool confirmed = co_await confirm_turn();
  if (!confirmed) co_return;
  placed_ = record_.to.empty();
  if (!placed_) group.spawn(put_update_in_place());
  co_await update_in_place();
  if (reload_ || decided_) co_return;
  const Hooks before = co_await pass_hooks(HookPoint::before_drain);
  if (before == Hooks::failed) decided_ = Event::drain_ended;
  if (before != Hooks::passed) co_return;
  group.spawn(run_drain());
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

// Before the first pod leaves: an update that cannot be put in place is worth no eviction. Again after a crash, which
// costs nothing where it has been done.
asio::awaitable<void> Agent::Impl::put_update_in_place() {
  auto placed = co_await parts_.backend.apply(record_.to, within(apply_limit));
  placed_ = true;
  if (!placed) {
    cause_ = "ApplyFailed";
    cause_message_ = "version " + record_.to + " could not be put in place: " + placed.error().message();
    decided_ = Event::drain_ended;
  }
  changed_->notify();
}

// Most systems have done it before they ask for a reboot: only what takes a while is worth a word.
asio::awaitable<void> Agent::Impl::update_in_place() {
  const TimePoint worth_a_word = now() + std::chrono::seconds(2);
  while (!placed_ && !reload_ && !decided_) {
    if (now() >= worth_a_word)
      co_await show("ApplyingUpdate", "version " + record_.to + " is being put in place for the next boot");
    co_await wait(now() < worth_a_word ? worth_a_word : TimePoint::max());
  }
}

std::optional<Event> Agent::Impl::drain_interrupted() {
  cordon_seen_ = cordon_seen_ || (cordoned_ && node_.unschedulable);
  // Our own view may have been away for as long as the cordon stood; the drain knows since when it has it.
  const bool lost = drain_status_.uncordoned_meanwhile() && !node_.unschedulable;
  if (!lost && (!cordon_seen_ || node_.unschedulable)) return std::nullopt;
  return uncordoned_by_somebody();
}

Event Agent::Impl::uncordoned_by_somebody() {
  cause_ = "Uncordoned";
  cause_message_ = "somebody made the node schedulable in the middle of its update";
  return Event::cordon_lost;
}

// A new reason is shown at once, how far it is now and then.
asio::awaitable<TimePoint> Agent::Impl::show_drain(TimePoint shown_last) {
  std::string reason = lb_waiting_ ? lb_waiting_->first : drain_status_.reason();
  const bool due = learn_leaked() || reason != status_.reason || now() >= shown_last + status_interval;
  if (!due) co_return shown_last;
  co_await show(std::move(reason), lb_waiting_ ? lb_waiting_->second : drain_status_.message());
  co_return now();
}

// For whoever goes on after a crash, who cannot tell any more which volumes the pods used that had left before.
bool Agent::Impl::learn_leaked() {
  if (!drain_ || record_.leaked == drain_->leaked()) return false;
  record_.leaked = drain_->leaked();
  return true;
}

asio::awaitable<bool> Agent::Impl::confirm_turn() {
  for (;;) {
    auto turn = co_await parts_.slots.confirm(within(request_timeout));
    if (turn && turn->ours) co_return true;
    if (turn) {
      decided_ = Event::turn_lost;
      changed_->notify();
      co_return false;
    }
    co_await clock_.sleep_until(now() + look_interval);
  }
}

asio::awaitable<void> Agent::Impl::run_drain() {
  // After a restart or a long hook the turn may have gone: nothing is evicted without it.
  const bool confirmed = co_await confirm_turn();
  if (!confirmed) co_return;
  drain::Options options = options_.drain;
  options.run_id = record_.run;
  options.cordoned_by = cordoned_by;
  options.restore_cordon_on_failure = false;  // the duty of the next state
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
  for (const drain::PodReport& pod : report.pods)
    if (pod.outcome == drain::PodOutcome::skipped) left_alone_.insert(pod.uid);
  if (report.outcome == drain::Outcome::node_gone) {
    reload_ = true;
  } else if (!decided_) {
    decided_ = report.outcome == drain::Outcome::drained ? Event::drained : Event::drain_ended;
    cause_ = report.outcome == drain::Outcome::blocked ? "DrainBlocked" : "DrainFailed";
    cause_message_ = report.message;
  }
  changed_->notify();
}

}  // namespace haulout::agent
