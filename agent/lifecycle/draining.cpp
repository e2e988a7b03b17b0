#include "agent/lifecycle/draining.hpp"

#include <fmt/chrono.h>

#include "agent/lifecycle/node_record.hpp"
#include "agent/lifecycle/updating.hpp"
#include "base/scope_exit.hpp"
#include "drain/cordon.hpp"
#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

asio::awaitable<void> leave_load_balancers(const Context& context, std::function<void(std::optional<HoldUp>)> hold) {
  const Duration limit = context.options.lb_drain_wait;
  if (limit == Duration::zero()) co_return;
  k8s::Client& client = context.client;
  const std::string& name = context.options.node;
  const auto wait_for = std::chrono::duration_cast<WallTime::duration>(limit);
  Backoff backoff(patience);
  std::optional<WallTime> until;
  while (!until) {
    auto node = co_await client.get_node(name, context.within(request_timeout));
    const auto patch = node ? exclude_patch(*node, true) : std::nullopt;
    if (node && !patch) {
      const auto mark = drain::mark_of(*node);
      until = (mark && mark->run == context.record.run ? mark->at : client.server_now()) + wait_for;
    } else if (node) {
      node = co_await client.patch_node(name, *patch, k8s::DryRun::none, context.within(request_timeout));
      if (node) until = client.server_now() + wait_for;
    }
    if (node) {
      context.view.see(*node);
    } else {
      if (!k8s::is_conflict(node.error()))
        hold(HoldUp{reason::cannot_exclude,
                    fmt::format("the node cannot be excluded from load balancers yet: {}", node.error().message())});
      context.activity.wake();
      co_await context.pause(backoff.next(context.rng, node.error().retry_after));
    }
  }
  const auto left = std::clamp<Duration>(*until - client.server_now(), Duration::zero(), limit);
  hold(HoldUp{reason::waiting_for_load_balancers,
              fmt::format("waiting until {:%FT%TZ} so that load balancers stop sending traffic to this node",
                          std::chrono::floor<std::chrono::seconds>(*until))});
  context.activity.wake();
  co_await context.pause(left);
  hold(std::nullopt);
  context.activity.wake();
}

asio::awaitable<void> return_to_load_balancers(const Context& context) {
  Backoff backoff(patience);
  while (!context.activity.must_reload()) {
    const auto patch = exclude_patch(context.node(), false);
    if (!patch) co_return;
    const auto patched = co_await patch_own_node(context, *patch, request_timeout);
    if (patched) {
      if (patched->replaced) context.activity.reload();
      if (patched->conflict) co_await context.pause(backoff.next(context.rng));
      continue;
    }
    const Error& error = patched.error();
    if (k8s::is_gone(error)) co_return context.activity.reload();
    co_await context.writer.show(reason::cannot_restore,
                                 "the node cannot be added to load balancers again yet: " + error.message());
    co_await context.pause(backoff.next(context.rng, error.retry_after));
  }
}

namespace {

// How often a running drain writes its progress to the Node.
constexpr Duration status_interval = std::chrono::seconds(15);
// Time limit for the update tool, which downloads an image and writes it to the disk.
constexpr Duration apply_limit = std::chrono::hours(1);

// Returns true if this run has cordoned the node. The mark counts, too, because `kubectl uncordon` does not remove it.
bool has_been_cordoned(const Context& context) {
  const auto mark = drain::mark_of(context.node());
  return context.record.cordoned || (mark && mark->run == context.record.run);
}

}  // namespace

bool DrainCordon::lost(bool unschedulable, bool diagnosed) {
  seen_ = seen_ || (accepted_ && unschedulable);
  return !unschedulable && (seen_ || diagnosed);
}

Draining::Draining(const Context& context, GateWatch& gates, OwnSlot& slot, Hooks& hooks, RemainingPods& pods,
                   DrainStatus& status)
    : context_(context),
      gates_(gates),
      slot_(slot),
      hooks_(hooks),
      pods_(pods),
      status_(status),
      cordon_(has_been_cordoned(context)) {}

asio::awaitable<Decision> Draining::run() {
  if (context_.rebooted()) co_return Decision{Event::boot_changed};
  // If the node was uncordoned while no agent was running, the drain must not begin.
  if (cordon_.lost(context_.node().unschedulable, false)) co_return cordon_lost();
  const bool surges = context_.options.drain.guards.surge != drain::Surge::off;
  const bool asks = context_.options.drain.eviction_requests != drain::EvictionRequests::off;
  if ((surges && !context_.record.surges) || (asks && !context_.record.asks)) {
    // Written before the first pod is surged or asked for, so that the next process knows of it.
    context_.record.surges |= surges;
    context_.record.asks |= asks;
    if (!co_await context_.writer.write()) co_return Decision{Event::drain_ended};
  }
  pods_.begin_drain();
  // A pause may have been set while no agent was running, so ask the gates first.
  const Result<std::optional<Decision>> paused = co_await gates_.given_up();
  if (paused && *paused) co_return **paused;
  status_.begin();
  co_await with_task_group([this](TaskGroup& group) { return watched(group); });
  learn_from_drain();
  drain_.reset();
  if (const auto& decision = context_.activity.decision()) co_return *decision;
  if (step_ != Step::drained) co_return Decision{Event::drain_ended};
  co_return Decision{context_.installs_after_drain() ? Event::update_due : Event::drained};
}

asio::awaitable<void> Draining::watched(TaskGroup& group) {
  Activity& activity = context_.activity;
  group.spawn(slot_.follow());
  group.spawn(gates_.follow_pauses());
  group.spawn(begin_with_slot());
  co_await until_slot_confirmed();
  if (interrupted()) co_return;
  if (context_.record.to.empty())
    step_ = Step::draining;
  else
    group.spawn(install_update());
  co_await until_installed();
  if (interrupted()) co_return;
  if (context_.installs_after_drain()) group.spawn(download_updates());
  const HookResult before = co_await pass_hooks(HookPoint::before_drain);
  if (before.outcome != HookResult::Outcome::passed) co_return;
  const TaskGroup::ChildId child = group.spawn(drain());
  activity.on_interrupt([&group, child] { group.cancel(child); });
  const ScopeExit over([&activity] { activity.on_interrupt(nullptr); });
  TimePoint shown = context_.now() - status_interval;
  while (!activity.ended() && step_ != Step::drained) {
    if (interrupted()) break;
    shown = co_await show(shown);
    if (!activity.decision() && step_ != Step::drained)
      co_await activity.wait(std::max(context_.within(std::chrono::milliseconds(100)), shown + status_interval));
  }
  if (!activity.ended()) co_await pass_hooks(HookPoint::after_drain);
}

asio::awaitable<HookResult> Draining::pass_hooks(HookPoint point) {
  HookResult result = co_await hooks_.pass(point, [this] { return interrupted(); });
  if (result.failed()) context_.activity.decide(result.decision(Event::drain_ended));
  co_return result;
}

// Installs the update before the first eviction, so that no pod is evicted in vain if the installation fails. After a
// crash it runs again, at no cost if the update is already installed.
asio::awaitable<void> Draining::install_update() {
  const std::string& to = context_.record.to;
  auto installed = co_await context_.parts.backend.apply(to, context_.within(apply_limit));
  const std::string why = installed ? std::string() : "version " + to + ": " + installed.error().message();
  if (installed) {
    // An updater counts its own failures, and for it this step does nothing.
    if (!context_.parts.updater) context_.record.failed_updates = 0;
    step_ = Step::draining;
  } else if (context_.record.cordoned) {
    // The version was in place before, so this says only that the update tool does not answer now.
    context_.activity.decide({Event::drain_ended, reason::apply_failed, why});
  } else {
    context_.activity.decide(
        failed_update(context_.record, context_.options.update_attempts, reason::apply_failed, why));
  }
  context_.activity.wake();
}

// Downloads the package updates during the drain. If that fails, the installation after the drain downloads them, which
// only takes longer.
asio::awaitable<void> Draining::download_updates() {
  const auto done = co_await context_.parts.updater->download(context_.within(apply_limit));
  if (!done)
    context_.writer.warn(
        reason::updating,
        "the updates could not be downloaded in advance; their installation downloads them: " + done.error().message());
}

// Waits until the version is installed for the next boot. Most systems have installed it before they report the need
// for a reboot. Therefore the Node shows that the agent waits only if that takes more than two seconds.
asio::awaitable<void> Draining::until_installed() {
  const TimePoint worth_a_word = context_.within(std::chrono::seconds(2));
  while (step_ == Step::installing && !interrupted()) {
    if (context_.now() >= worth_a_word)
      co_await context_.writer.show(reason::applying_update,
                                    "version " + context_.record.to + " is being installed for the next boot");
    co_await context_.activity.wait(context_.now() < worth_a_word ? worth_a_word : TimePoint::max());
  }
}

bool Draining::interrupted() {
  if (cordon_.lost(context_.node().unschedulable, uncordoned_meanwhile(findings())))
    context_.activity.decide(cordon_lost());
  return context_.activity.ended();
}

// Writes a new reason to the Node at once, and progress at intervals.
asio::awaitable<TimePoint> Draining::show(TimePoint shown_last) {
  const Findings found = findings();
  std::string reason = held_up_ ? held_up_->reason : status_.reason(found);
  const bool stands = cordon_.accepted() && !context_.record.cordoned;
  if (stands) context_.record.cordoned = true;
  const bool due = learn_from_drain() || stands || reason != context_.writer.status().reason ||
                   context_.now() >= shown_last + status_interval;
  if (!due) co_return shown_last;
  co_await context_.writer.show(std::move(reason), held_up_ ? held_up_->message : status_.message(found));
  co_return context_.now();
}

// Stores in the record what the next process cannot find out any more after a crash: which volumes are leaked (no pod
// used them, so the drain does not wait for them), and which DaemonSets have pods in place of evicted ones. Returns
// true if there is something new.
bool Draining::learn_from_drain() {
  if (!drain_) return false;
  Record& record = context_.record;
  std::set<std::string> evicted = drain_->evicted_daemon_sets();
  if (record.leaked == drain_->leaked() && record.evicted_daemon_sets == evicted) return false;
  record.leaked = drain_->leaked();
  record.evicted_daemon_sets = std::move(evicted);
  return true;
}

asio::awaitable<bool> Draining::confirm_slot() {
  Backoff backoff(eager_patience);
  while (!context_.activity.decision()) {
    auto turn = co_await context_.parts.slots.confirm(context_.within(request_timeout));
    held_up_.reset();
    if (turn && turn->uncertain) turn = Error(Errc::unavailable, turn->why);
    if (!turn)
      held_up_ = {reason::slots_unavailable, turn.error().message()};
    else if (!turn->ours)
      context_.activity.decide({Event::turn_lost});
    context_.activity.wake();
    if (turn) co_return turn->ours;
    co_await context_.pause(backoff.next(context_.rng, turn.error().retry_after));
  }
  co_return false;
}

asio::awaitable<void> Draining::begin_with_slot() {
  if (co_await confirm_slot()) step_ = Step::installing;
}

asio::awaitable<void> Draining::until_slot_confirmed() {
  while (step_ == Step::confirming_slot && !interrupted()) {
    if (held_up_) co_await context_.writer.show(held_up_->reason, held_up_->message);
    co_await context_.activity.wait(TimePoint::max());
  }
}

asio::awaitable<void> Draining::drain() {
  // After a restart or a long hook the slot may be lost. Without a slot the agent must not evict pods.
  if (!co_await confirm_slot()) co_return;
  drain::Options options = context_.options.drain;
  options.run_id = context_.record.run;
  options.cordoned_by = cordoned_by;
  options.pinned_controllers = context_.record.pinned;
  options.restore_cordon_on_failure = false;  // the states after `draining` decide what happens to the cordon
  drain_ = std::make_unique<drain::Drain>(context_.client, context_.rng, status_, options, context_.options.node);
  drain_->expect_leaked(context_.record.leaked);
  drain_->expect_evicted(context_.record.evicted_daemon_sets);
  if (context_.record.asks) drain_->expect_requests();
  bool goes_on = co_await drain_->preflight();
  if (goes_on) goes_on = co_await drain_->cordon();
  if (goes_on) {
    cordon_.accept();
    co_await leave_load_balancers(context_, [this](std::optional<HoldUp> what) { held_up_ = std::move(what); });
    static_cast<void>(co_await drain_->evict());
    context_.record.surges = drain_->may_have_surged();
    context_.record.asks = drain_->may_have_requested();
  }
  const drain::Report report = drain_->report();
  pods_.learn(report);
  // A decision that was made meanwhile takes precedence: it may be why the drain has ended.
  Activity& activity = context_.activity;
  if (report.outcome == drain::Outcome::node_gone)
    activity.reload();
  else if (!activity.decision() && report.outcome == drain::Outcome::drained)
    step_ = Step::drained;
  else if (!activity.decision())
    activity.decide({Event::drain_ended,
                     report.outcome == drain::Outcome::blocked ? reason::drain_blocked : reason::drain_failed,
                     report.message});
  activity.wake();
}

}  // namespace haulout::agent
