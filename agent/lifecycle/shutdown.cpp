#include "agent/lifecycle/shutdown.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/lifecycle/node_record.hpp"
#include "agent/node/node_status.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// The end of the delay, which the agent reserves for writing to the Node what happened to the pods.
constexpr Duration last_words = std::chrono::milliseconds(500);

// Drops the diagnosis KubeletNotReady. A kubelet with shutdownGracePeriod is not Ready while it terminates the pods, so
// the remedy of the diagnosis does not apply.
class WhileItShutsDown final : public drain::DrainObserver {
 public:
  explicit WhileItShutsDown(drain::DrainObserver& observer) : observer_(observer) {}
  void on_event(const drain::Event& event) override {
    if (!event.diagnosis || event.diagnosis->code != reason::kubelet_not_ready) observer_.on_event(event);
  }

 private:
  drain::DrainObserver& observer_;
};

}  // namespace

Leaving leaving_of(const Record& record) {
  if (record.state == State::draining || record.state == State::updating) return Leaving::draining;
  const Duty cordon = duties_of(record.state).cordon;
  // The node may be schedulable in a state that requires a cordon: if the machine boots again after the agent has
  // uncordoned the node, the state is `verifying`, but the agent has no cordon (in_maintenance() is false).
  const bool in_service = cordon == Duty::no || (cordon == Duty::keep && record.uncordon) || !in_maintenance(record);
  return in_service ? Leaving::drains : Leaving::has_left;
}

LeavingResult leaving_result(const drain::Report& report) {
  if (report.outcome == drain::Outcome::refused) return {reason::shutdown_undrained, report.message};
  std::size_t evicted = 0, ended = 0, left = 0;
  std::string first;
  for (const drain::PodReport& pod : report.pods) {
    if (pod.outcome == drain::PodOutcome::skipped) continue;
    if (pod.outcome == drain::PodOutcome::evicted) {
      ++evicted;
    } else if (pod.outcome == drain::PodOutcome::gone) {
      ++ended;
    } else if (++left == 1) {
      const std::string_view why = pod.reason.empty() ? drain::to_string(pod.outcome) : std::string_view(pod.reason);
      first = fmt::format("{} ({})", pod.key(), why);
    }
  }
  const bool drained = report.outcome == drain::Outcome::drained;
  const std::size_t all = evicted + ended + left;
  std::string message = "a person or program is shutting the machine down; ";
  if (all == 0)
    message += drained ? "no pod had to leave" : "no pod was evicted";
  else
    message += fmt::format("{} of {} {} evicted and deleted in the meantime", evicted, count_of(all, "pod"),
                           evicted == 1 || all == 1 ? "was" : "were");
  if (ended > 0)
    message +=
        fmt::format("; {} ended without an eviction, through the kubelet (shutdownGracePeriod) or another client",
                    count_of(ended, "pod"));
  if (left > 0)
    message += fmt::format("; {} {} still on the node: {}{}", count_of(left, "pod"), left == 1 ? "is" : "are", first,
                           left > 1 ? fmt::format(" and {} more", left - 1) : "");
  if (!drained && (report.outcome == drain::Outcome::failed || left == 0)) message += "; " + report.message;
  return {drained ? reason::shutdown_drained : reason::shutdown_undrained, std::move(message)};
}

Shutdowns::Shutdowns(asio::any_io_executor executor, const Context& context, Loading& loading,
                     std::function<std::string()> drain_waits_for)
    : context_(context), loading_(loading), drain_waits_for_(std::move(drain_waits_for)), news_(std::move(executor)) {}

void Shutdowns::delay() {
  ShutdownDelay* const port = context_.parts.shutdown;
  if (port && context_.record.state != State::rebooting) port->hold("drains this node before it goes down");
}

void Shutdowns::permit_own_reboot() {
  if (ShutdownDelay* const port = context_.parts.shutdown) port->release();
}

bool Shutdowns::going_down() const {
  return context_.parts.shutdown && context_.parts.shutdown->shutdown_at();
}

asio::awaitable<void> Shutdowns::follow() {
  ShutdownDelay& port = *context_.parts.shutdown;
  std::string told;
  for (;;) {
    const std::string problem = port.problem();
    if (!problem.empty() && told.empty())
      context_.writer.warn(reason::cannot_delay_shutdown,
                           "a reboot that the agent did not request will not be delayed for the drain: " + problem);
    if (!problem.empty()) told = problem;
    news_.notify();
    context_.activity.wake();
    co_await port.changed();
  }
}

asio::awaitable<void> Shutdowns::until_drain_is_due() {
  for (;;) {
    TimePoint until = TimePoint::max();
    if (going_down() && context_.parts.shutdown->held()) {
      const TimePoint limit = *context_.parts.shutdown->shutdown_at();
      const Leaving leaving = leaving_of(context_.record);
      if (leaving == Leaving::drains && context_.now() < limit) co_return;
      until = limit - last_words;
      const bool late = leaving == Leaving::draining && context_.now() >= until;
      if (late)
        context_.writer.warn(reason::shutdown_undrained,
                             "a person or program is shutting the machine down: " + drain_waits_for_());
      if (late || leaving != Leaving::draining) context_.parts.shutdown->let_shutdown_proceed();
    }
    co_await news_.wait_until(context_.clock, until);
  }
}

asio::awaitable<void> Shutdowns::drain_node() {
  ShutdownDelay& port = *context_.parts.shutdown;
  const TimePoint limit = port.shutdown_at().value_or(context_.now());
  drain_ = Drain::under_way;
  co_await with_task_group([this, limit](TaskGroup& group) { return drain_until(group, limit); });
  if (drain_ == Drain::under_way)
    context_.writer.warn(
        reason::shutdown_undrained,
        "the machine goes down although its drain has not ended: logind delays it no longer (InhibitDelayMaxSec=). If "
        "the agent has cordoned the node, the cordon stays until the next boot");
  port.let_shutdown_proceed();
  // If the shutdown is cancelled, the agent reads the Node again and continues from its record, because the work of the
  // current state was cancelled.
  while (going_down()) co_await news_.wait_until(context_.clock, TimePoint::max());
  context_.activity.reload();
}

asio::awaitable<void> Shutdowns::drain_until(TaskGroup& group, TimePoint limit) {
  group.spawn(show_and_drain(limit));
  while (drain_ == Drain::under_way && going_down() && context_.now() < limit)
    co_await news_.wait_until(context_.clock, limit);
  // A drain that ended because the shutdown was cancelled has not failed.
  if (!going_down()) drain_ = Drain::called_off;
}

asio::awaitable<void> Shutdowns::show_and_drain(TimePoint limit) {
  NodeWriter& writer = context_.writer;
  Record& record = context_.record;
  Activity& activity = context_.activity;
  // Repeat if the Node has to be read again: a write from before the shutdown may have reached the server only after
  // the Node was read.
  bool begun = false;
  do {
    co_await loading_.run();
    if (!std::exchange(begun, true) && leaving_of(record) == Leaving::has_left) break;
    if (record.run.empty()) record.run = context_.new_run();
    const double seconds = std::chrono::duration<double>(limit - context_.now()).count();
    co_await writer.show(
        reason::shutting_down,
        limit == TimePoint::max()
            ? "a person or program is shutting the machine down: the shutdown waits until the pods that must leave are "
              "deleted"
            : fmt::format("a person or program is shutting the machine down: the pods on it have {:.1f} s to terminate",
                          seconds));
    if (activity.must_reload()) continue;
    const LeavingResult result = leaving_result(co_await drain(limit));
    co_await writer.show(result.reason, result.message);
  } while (activity.must_reload());
  drain_ = Drain::done;
  news_.notify();
}

asio::awaitable<drain::Report> Shutdowns::drain(TimePoint limit) {
  drain::Options options = context_.options.drain;
  options.run_id = context_.record.run;
  options.cordoned_by = cordoned_by;
  options.restore_cordon_on_failure = false;  // the process after the boot removes the cordon
  // The machine goes down in any case. Therefore the drain waits neither for the settle time nor for the work of pods,
  // replaces no pod in advance, and works without the permission to read volumes.
  options.settle = Duration::zero();
  options.guards.surge = drain::Surge::off;
  options.policy.waits_for_work = false;
  for (drain::VolumeWait* wait : {&options.volumes, &options.volume_turns})
    if (*wait == drain::VolumeWait::required) *wait = drain::VolumeWait::if_permitted;
  options.timeout = std::max(Duration::zero(), limit - last_words - context_.now());
  WhileItShutsDown observer(context_.parts.drain_observer);
  drain::Drain drain(context_.client, context_.rng, observer, options, context_.options.node);
  co_return co_await drain.run();
}

asio::awaitable<void> Shutdowns::until_known() {
  ShutdownDelay* const port = context_.parts.shutdown;
  while (!context_.activity.must_reload() && port && !port->known()) co_await context_.activity.wait(TimePoint::max());
}

asio::awaitable<void> Shutdowns::until_called_off() {
  co_await until_known();
  while (!context_.activity.must_reload() && going_down()) {
    // A reason that is already shown says more: what a previous process did for the pods, or what has failed.
    if (context_.writer.status().reason.empty())
      co_await context_.writer.show(reason::shutting_down,
                                    "a person or program is shutting the machine down: the node stays cordoned until "
                                    "the machine has booted again");
    co_await context_.activity.wait(TimePoint::max());
  }
}

}  // namespace haulout::agent
