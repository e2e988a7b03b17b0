// A shutdown or reboot by another program: the agent drains the node for as long as the shutdown waits. The state does
// not change. The record names the run before the agent changes anything, so that the process after the boot, or after
// a crash, takes the cordon back.
#include <fmt/format.h>

#include "agent/lifecycle/agent_impl.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// The part of the delay that the agent keeps for writing what became of the pods.
constexpr Duration last_words = std::chrono::milliseconds(500);

// Suppresses the diagnosis KubeletNotReady. A kubelet with shutdownGracePeriod is not Ready while it terminates the
// pods, and its remedy (to bring the node back) does not apply.
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

void Agent::Impl::delay_shutdowns() {
  // In `rebooting` the next shutdown may be the agent's own.
  if (parts_.shutdown && record_.state != State::rebooting)
    parts_.shutdown->hold("drains this node before it goes down");
}

asio::awaitable<void> Agent::Impl::follow_shutdown() {
  std::string told;
  for (;;) {
    const std::string problem = parts_.shutdown->problem();
    if (!problem.empty() && told.empty())
      warn(reason::cannot_delay_shutdown,
           "a reboot that the agent did not request will not be delayed for the drain: " + problem);
    if (!problem.empty()) told = problem;
    shutdown_news_->notify();
    changed_->notify();
    co_await parts_.shutdown->changed();
  }
}

asio::awaitable<void> Agent::Impl::until_shutdown() {
  for (;;) {
    TimePoint until = TimePoint::max();
    if (going_down() && parts_.shutdown->held()) {
      const TimePoint limit = *parts_.shutdown->shutdown_at();
      const Leaving leaving = leaving_of(record_);
      if (leaving == Leaving::drains && now() < limit) co_return;
      until = limit - last_words;
      const bool late = leaving == Leaving::draining && now() >= until;
      if (late)
        warn(reason::shutdown_undrained,
             "the machine is shutting down, not requested by the agent: " + drain_status_.message(findings()));
      if (late || leaving != Leaving::draining) parts_.shutdown->let_shutdown_proceed();
    }
    co_await shutdown_news_->wait_until(clock_, until);
  }
}

asio::awaitable<void> Agent::Impl::leave() {
  const TimePoint limit = parts_.shutdown->shutdown_at().value_or(now());
  leaving_ = true;
  co_await with_task_group([this, limit](TaskGroup& group) { return leave_by(group, limit); });
  if (std::exchange(leaving_, false))
    warn(reason::shutdown_undrained, "the machine is shutting down and waits no longer: " + status_.message);
  parts_.shutdown->let_shutdown_proceed();
  // The shutdown interrupted the activity, so the agent starts again from the record on the Node.
  while (going_down()) co_await shutdown_news_->wait_until(clock_, TimePoint::max());
  reload_ = true;
}

asio::awaitable<void> Agent::Impl::leave_by(TaskGroup& group, TimePoint limit) {
  group.spawn(say_and_leave(limit));
  while (leaving_ && going_down() && now() < limit) co_await shutdown_news_->wait_until(clock_, limit);
  // The shutdown was called off, so nothing has failed.
  if (!going_down()) leaving_ = false;
}

asio::awaitable<void> Agent::Impl::say_and_leave(TimePoint limit) {
  // The loop runs again if a write from before the shutdown reached the server only after load() had read the Node.
  bool begun = false;
  do {
    co_await load();
    if (!std::exchange(begun, true) && leaving_of(record_) == Leaving::has_left) break;
    if (record_.run.empty()) record_.run = new_run();
    const double seconds = std::chrono::duration<double>(limit - now()).count();
    co_await show(
        reason::shutting_down,
        limit == TimePoint::max()
            ? "the machine is shutting down, not requested by the agent: it waits until its pods are deleted"
            : fmt::format(
                  "the machine is shutting down, not requested by the agent: its pods have {:.1f} s to terminate",
                  seconds));
    if (reload_) continue;
    const LeavingResult result = leaving_result(co_await drain_for_shutdown(limit));
    co_await show(result.reason, result.message);
  } while (reload_);
  leaving_ = false;
  shutdown_news_->notify();
}

asio::awaitable<drain::Report> Agent::Impl::drain_for_shutdown(TimePoint limit) {
  drain::Options options = options_.drain;
  options.run_id = record_.run;
  options.cordoned_by = cordoned_by;
  options.restore_cordon_on_failure = false;  // the process after the boot does that
  // The machine goes down in any case. So the drain waits for no settle time, and it does not require permission to see
  // volumes.
  options.settle = Duration::zero();
  for (drain::VolumeWait* wait : {&options.volumes, &options.volume_turns})
    if (*wait == drain::VolumeWait::required) *wait = drain::VolumeWait::if_permitted;
  options.timeout = std::max(Duration::zero(), limit - last_words - now());
  WhileItShutsDown observer(parts_.drain_observer);
  drain::Drain drain(client_, rng_, observer, options, options_.node);
  co_return co_await drain.run();
}

asio::awaitable<void> Agent::Impl::shutdown_is_known() {
  while (!reload_ && parts_.shutdown && !parts_.shutdown->known()) co_await wait(TimePoint::max());
}

asio::awaitable<void> Agent::Impl::stays_up() {
  co_await shutdown_is_known();
  while (!reload_ && going_down()) {
    // A reason that is already shown tells more: what a previous process could do for the pods, or what has failed.
    if (status_.reason.empty())
      co_await show(reason::shutting_down,
                    "the machine is shutting down, not requested by the agent: the node stays cordoned until the "
                    "machine has booted again");
    co_await wait(TimePoint::max());
  }
}

asio::awaitable<void> Agent::Impl::kubelet_is_back() {
  while (!reload_ && !(node_.ready && (node_.boot_id.empty() || node_.boot_id == boot_id_))) {
    co_await show(reason::node_not_ready, "the kubelet has not reported the node Ready since this boot");
    co_await wait(now() + look_interval);
  }
}

}  // namespace haulout::agent
