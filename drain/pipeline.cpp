#include "drain/pipeline.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "drain/reasons.hpp"

namespace haulout::drain {

namespace {

bool stands_before(const TrackedPod* tracked, const OrderKey& order) {
  return tracked->order < order;
}

}  // namespace

// True if the last eviction of the pod failed or had no effect. A refusal by a budget does not count, because the
// pipeline wakes such a pod when its budget allows the eviction.
bool Pipeline::troubled(const TrackedPod& tracked) {
  return tracked.refusals > 0 && tracked.last_verdict != EvictionVerdict::budget;
}

Pipeline::Pipeline(PipelineOptions options, Rng& rng, Decide decide, Emit emit, ServerNow server_now)
    : options_(std::move(options)),
      rng_(rng),
      decide_(std::move(decide)),
      emit_(std::move(emit)),
      server_now_(std::move(server_now)) {}

void Pipeline::start(TimePoint now) {
  started_ = taking_no_pods_since_ = now;
  for (const TrackedPod* tracked : order_)
    if (tracked->state == PodState::parked || tracked->state == PodState::terminating)
      emit_(tracked->state == PodState::parked ? EventType::parked : EventType::terminating, tracked->report);
}

void Pipeline::set_paused(bool paused, TimePoint now) {
  if (paused_ && !paused) taking_no_pods_since_ = now;
  if (!paused_ && paused) unpin(now);
  paused_ = paused;
}

void Pipeline::cordoned_anew(TimePoint now) {
  unpin(now);
  taking_no_pods_since_ = now;
}

// Forgets which controllers are pinned, because the node took pods. The watch events of those pods may have arrived
// before the Node's, so they may have counted as returns. Policy still applies to the pods as before.
void Pipeline::unpin(TimePoint now) {
  returns_.clear();
  options_.pinned_controllers.clear();
  std::vector<TrackedPod*> pinned;
  for (TrackedPod* tracked : order_)
    if (tracked->state == PodState::parked && tracked->hold == TrackedPod::Hold::pinned) pinned.push_back(tracked);
  for (TrackedPod* tracked : pinned) {
    tracked->hold = TrackedPod::Hold::policy;
    apply_decision(*tracked, now);
  }
  if (!options_.leaves_pinned) return;
  for (auto& [uid, tracked] : pods_)
    if (!std::exchange(tracked.left_pinned, {}).empty()) apply_decision(tracked, now);
}

void Pipeline::become(TrackedPod& tracked, PodState state) {
  --count_of(tracked.state);
  ++count_of(state);
  tracked.state = state;
  if (state != PodState::parked) tracked.hold = TrackedPod::Hold::none;
  using Leaves = EvictionGuard::Leaves;
  const bool gone = state == PodState::in_flight || state == PodState::terminating || state == PodState::vanished;
  const bool lost = state == PodState::parked && tracked.answer_lost;
  const bool unawaited = state == PodState::left && tracked.pod.terminating();
  const Leaves leaves = gone ? Leaves::yes : lost ? Leaves::perhaps : unawaited ? Leaves::unawaited : Leaves::no;
  for (EvictionGuard* guard : options_.guards) guard->leaving(tracked.pod, leaves);
}

void Pipeline::add_to_order(TrackedPod& tracked) {
  const auto place = std::lower_bound(order_.begin(), order_.end(), tracked.order, stands_before);
  if (place == order_.end() || *place != &tracked) order_.insert(place, &tracked);
}

void Pipeline::remove_from_order(const TrackedPod& tracked) {
  const auto place = std::lower_bound(order_.begin(), order_.end(), tracked.order, stands_before);
  if (place != order_.end() && *place == &tracked) order_.erase(place);
}

void Pipeline::apply_decision(TrackedPod& tracked, TimePoint now) {
  tracked.decision = decide_(tracked.pod);
  if (!tracked.left_pinned.empty() && tracked.decision.verdict == Verdict::evict) {
    tracked.decision.verdict = Verdict::skip;
    tracked.decision.reason = reason::pod_pinned;
    tracked.decision.message = tracked.left_pinned;
  }
  const Decision& decision = tracked.decision;
  PodReport& report = tracked.report;
  report.verdict = decision.verdict;
  if (decision.verdict == Verdict::skip) {
    const bool waited_for = must_leave(tracked.state);
    remove_from_order(tracked);
    tracked.holds_place = false;
    become(tracked, PodState::left);
    report.outcome = PodOutcome::skipped;
    report.reason = decision.reason;
    report.message = decision.message;
    if (started_ && waited_for) emit_(EventType::left, report);
    return;
  }
  add_to_order(tracked);
  const bool refused = !started_ && decision.verdict == Verdict::refuse;
  if (tracked.pod.terminating() && !refused) {
    see_terminating(tracked, now);
  } else if (tracked.hold == TrackedPod::Hold::pinned) {
    return;
  } else if (decision.verdict != Verdict::evict) {
    // After the plan was made, `refuse` cannot stop the drain any more, so it parks the pod like a protected one.
    hold(tracked, TrackedPod::Hold::policy, decision.reason, decision.message);
  } else if (tracked.state == PodState::left || tracked.hold == TrackedPod::Hold::policy) {
    queue(tracked);
  }
}

void Pipeline::queue(TrackedPod& tracked) {
  become(tracked, PodState::queued);
  tracked.stuck = false;
  tracked.report.outcome = PodOutcome::planned;
  tracked.report.reason = tracked.decision.reason;
  tracked.report.message = tracked.decision.message;
}

void Pipeline::hold(TrackedPod& tracked, TrackedPod::Hold why, std::string reason, std::string message) {
  tracked.hold = why;
  park(tracked, std::move(reason), std::move(message), TimePoint::max());
  // While the plan is made, a refusal stops the whole drain. Later it only parks this pod.
  if (!started_ && tracked.decision.verdict == Verdict::refuse) tracked.report.outcome = PodOutcome::refused;
}

void Pipeline::park(TrackedPod& tracked, std::string reason, std::string message, TimePoint wake_at) {
  const bool news =
      tracked.state != PodState::parked || tracked.report.reason != reason || tracked.report.message != message;
  const bool told_before = tracked.was_parked && tracked.report.reason == reason && tracked.report.message == message;
  become(tracked, PodState::parked);
  tracked.was_parked = true;
  tracked.holds_place = false;
  tracked.wake_at = wake_at;
  tracked.report.outcome = PodOutcome::waiting;
  tracked.report.reason = std::move(reason);
  tracked.report.message = std::move(message);
  if (started_ && news && !told_before) emit_(EventType::parked, tracked.report);
}

// Parks a pod whose budget is exhausted, until its next signal is due (signals.hpp).
void Pipeline::park_at_closed_gate(TrackedPod& tracked, TimePoint now) {
  // A first signal that failed for a reason other than the budget is sent again with the backoff of that reason.
  const bool tries_again = tracked.state == PodState::parked && !tracked.asked && troubled(tracked);
  if (tries_again && down_webhook(tracked).empty()) return;
  const std::string& budget = tracked.budgets->front();
  signals_.begin(budget, now, rng_);
  const TimePoint wake_at = std::max(now, signals_.next(budget, cause_of(tracked)));
  // The answer to the last signal explains more than the budget does, so the pod keeps that reason and message.
  if (tracked.denied || !down_webhook(tracked).empty())
    return park(tracked, std::string(park_reason(tracked.refusal.verdict)), tracked.refusal.message, wake_at);
  if (tracked.last_verdict != EvictionVerdict::budget) {
    tracked.backoff = Backoff(backoff_after(EvictionVerdict::budget));
    tracked.last_verdict = EvictionVerdict::budget;
    tracked.refusals = 0;
  }
  if (tracked.refusal.verdict != EvictionVerdict::budget) tracked.refusal = {EvictionVerdict::budget};
  park(tracked, std::string(park_reason(EvictionVerdict::budget)), book_.explain(*tracked.budgets), wake_at);
}

void Pipeline::mark_stuck(TrackedPod& tracked) {
  tracked.stuck = true;
  tracked.holds_place = false;
  tracked.report.reason = reason::pod_stuck_terminating;
  // Finalizers hold the pod only after its containers have ended. The end of its grace period does not prove that.
  tracked.report.message =
      !containers_have_ended(tracked.pod) || tracked.pod.finalizers.empty()
          ? "still exists 60 s after its grace period: is the kubelet of this node running?"
          : fmt::format("kept by its finalizers ({}): the controller that set them must remove them",
                        fmt::join(tracked.pod.finalizers, ", "));
  emit_(EventType::parked, tracked.report);
}

// Makes a parked pod due after a change that may let its eviction succeed.
void Pipeline::wake(TrackedPod& tracked, TimePoint now) {
  if (tracked.state != PodState::parked || tracked.hold != TrackedPod::Hold::none) return;
  if (tracked.last_verdict == EvictionVerdict::fatal || tracked.last_verdict == EvictionVerdict::forbidden) return;
  // Frequent events must not cause a request each. A pod that was refused often waits longer after its last answer.
  const Duration spacing = std::min<Duration>(std::chrono::seconds(1), tracked.refusals * Backoff::minimum * 2);
  tracked.wake_at = std::min(tracked.wake_at, std::max(now, tracked.last_answer + spacing));
}

// Applies changes of the pod that were only recorded while its eviction was in flight.
void Pipeline::catch_up(TrackedPod& tracked, TimePoint now) {
  if (tracked.state == PodState::queued || tracked.state == PodState::parked) apply_decision(tracked, now);
}

}  // namespace haulout::drain
