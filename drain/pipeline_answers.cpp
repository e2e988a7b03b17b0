// Pipeline: processes the answers to evictions and the passing of time, and answers queries about its state.
#include <fmt/format.h>
#include <algorithm>

#include "drain/pipeline.hpp"
#include "drain/reasons.hpp"

namespace haulout::drain {

void Pipeline::answered(const std::string& uid, const Result<>& answer, TimePoint now, WallTime wall) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || !found->second.request_out) return;
  TrackedPod& tracked = found->second;
  const bool shortening = std::exchange(tracked.shortening, false);
  const bool was_signal = tracked.signal;
  const EvictionVerdict verdict = answer ? EvictionVerdict::accepted : classify_eviction(answer.error());
  const std::optional<Error> error = answer ? std::nullopt : std::optional(answer.error());
  count_answer(tracked, error ? &*error : nullptr, verdict, now);
  if (answer) {
    unseen_budget_lets_go(tracked, now);
    throttle_backoff_.reset();
    tracked.backoff.reset();
    tracked.refusals = 0;
    tracked.last_verdict = EvictionVerdict::accepted;
    tracked.refusal = {};
    tracked.grace_given = true;
    // The watch event came before this answer, and the server's times have whole seconds only. `wall` is more exact.
    if (std::exchange(tracked.inferred, false))
      tracked.report.evicted_at = std::min(wall, tracked.report.vanished_at.value_or(wall));
    tracked.accepted_until = now + acceptance_limit;
    if (tracked.state == PodState::in_flight) {
      tracked.holds_place = true;
      become(tracked, PodState::terminating);
      tracked.terminating_since = now;
      // The grace period begins when the pod is deleted, which a webhook may delay.
      tracked.terminating_until = TimePoint::max();
      tracked.report.outcome = PodOutcome::terminating;
      tracked.report.reason.clear();
      tracked.report.message.clear();
    }
    if (!tracked.report.evicted_at) {
      tracked.report.evicted_at = wall;
      emit_(EventType::evicted, tracked.report);
    }
    return;
  }
  // The eviction was refused, or its answer was lost, although the watch has already shown the pod terminating or
  // deleted. The watch is right. After a refusal, another client must have deleted the pod.
  if (tracked.state != PodState::in_flight) {
    if (std::exchange(tracked.inferred, false) && answer.error().code() == Errc::status) {
      tracked.report.evicted_at.reset();
      if (tracked.state == PodState::vanished) tracked.report.outcome = PodOutcome::gone;
    }
    // Meanwhile a list has shown the pod without a deletionTimestamp (etcd was restored from a backup). The answer is
    // about the state before that, so the pod is queued again.
    if (tracked.state == PodState::terminating && !tracked.pod.terminating()) revive(tracked, now);
    if (shortening && tracked.state == PodState::terminating) not_shortened(tracked, answer.error(), now);
    return;
  }
  if (verdict == EvictionVerdict::throttle) {
    throttle(tracked, answer.error(), was_signal, now);
  } else {
    refuse(tracked, answer.error(), verdict, now);
    // The budget allows the eviction by now. The refusal is about the time before, so the pod is tried again soon.
    const bool opened =
        was_signal && verdict == EvictionVerdict::budget && gate_of(tracked) != BudgetBook::Gate::closed;
    if (opened) tracked.wake_at = std::max(now, tracked.sent_at + Backoff::minimum);
  }
  catch_up(tracked, now);
  // The pod is not being evicted now, so guards may let another pod be evicted instead (P9): its controller lacks no
  // replacement for it, and its CSI driver is free.
  guards_changed();
}

// Updates the windows, lanes and signals. Needed for every answer, whatever state the pod has reached meanwhile.
void Pipeline::count_answer(TrackedPod& tracked, const Error* error, EvictionVerdict verdict, TimePoint now) {
  using V = EvictionVerdict;
  const std::string& uid = tracked.pod.uid;
  const bool answered = verdict != V::throttle && verdict != V::retry;
  tracked.request_out = false;
  tracked.last_answer = now;
  if (std::exchange(tracked.signal, false)) {
    signal_window_.answered(uid, answered);
    signals_.answered(tracked.lane.front());
    book_.signal_answered(tracked.pod, tracked.lane.front(), error == nullptr);
    tracked.denied = verdict == V::admission;
  } else {
    window_.answered(uid, answered);
    if (options_.respect_budgets) book_.answered(tracked.pod, tracked.lane, error == nullptr);
    tracked.denied = false;
  }
  // Only these answers prove that the admission webhooks have seen the request.
  tracked.asked |= verdict == V::accepted || verdict == V::budget || verdict == V::overlap || verdict == V::admission;
  hear_of_webhook(tracked, error, verdict, now);
}

void Pipeline::hear_of_webhook(TrackedPod& tracked, const Error* error, EvictionVerdict verdict, TimePoint now) {
  const std::string in_turn_for = std::exchange(tracked.in_turn_for, {});
  const auto told = error ? webhook_refusal(*error) : std::nullopt;
  if (told && told->down) down_webhooks_.refused(told->name, tracked.pod.uid, now, rng_);
  if (!in_turn_for.empty() && !(told && told->down && told->name == in_turn_for)) {
    const bool lost = verdict == EvictionVerdict::throttle || (verdict == EvictionVerdict::retry && !told);
    if (lost)
      down_webhooks_.lost(in_turn_for, tracked.pod.uid, now, rng_);
    else
      webhook_is_back(in_turn_for, now);
  }
  const auto& before = tracked.refusal.webhook;
  const bool answered = verdict != EvictionVerdict::throttle && verdict != EvictionVerdict::retry;
  if (before && !before->down && answered && !(told && told->name == before->name))
    webhook_has_changed(std::string(before->name), now);
}

// A budget that the drain may not read has let the pod go. It may allow the other pods of the same controller, too, so
// they become due. The next refusal shows if it does not.
void Pipeline::unseen_budget_lets_go(const TrackedPod& tracked, TimePoint now) {
  const std::string& group = UnseenBudgets::group_of(tracked.pod);
  if (!unseen_budgets_.let_go(group)) return;
  for (TrackedPod* other : order_)
    if (waits_unseen(*other) && UnseenBudgets::group_of(other->pod) == group) wake(*other, now);
}

// The webhook can be called again. All pods that it blocked become due.
void Pipeline::webhook_is_back(const std::string& name, TimePoint now) {
  for (TrackedPod* tracked : order_)
    if (tracked->state == PodState::parked && tracked->hold == TrackedPod::Hold::none && down_webhook(*tracked) == name)
      tracked->wake_at = std::min(tracked->wake_at, std::max(now, tracked->sent_at + Backoff::minimum));
  down_webhooks_.back(name);
}

// The webhook no longer denies a pod that it denied before. Only the denied pod that was tried longest ago becomes due,
// because the webhook may let its pods go one by one.
void Pipeline::webhook_has_changed(const std::string& name, TimePoint now) {
  TrackedPod* next = nullptr;
  for (TrackedPod* tracked : order_) {
    const auto& webhook = tracked->refusal.webhook;
    if (tracked->state != PodState::parked || !webhook || webhook->down || webhook->name != name) continue;
    if (!next || tracked->sent_at < next->sent_at) next = tracked;
  }
  if (!next) return;
  next->has_news = true;
  wake(*next, now);
}

void Pipeline::throttle(TrackedPod& tracked, const Error& error, bool was_signal, TimePoint now) {
  tracked.holds_place = false;
  if (was_signal) {
    // A throttled signal is sent again as soon as the throttle ends. A signal that is throttled twice in a row waits
    // between Signals::shortest and Signals::longest.
    const auto before = std::exchange(tracked.last_verdict, EvictionVerdict::throttle);
    const bool again = before == EvictionVerdict::throttle;
    tracked.refusals = again ? tracked.refusals + 1 : 1;
    park(tracked, tracked.report.reason, tracked.report.message,
         again ? now + rng_.between(Signals::shortest, Signals::longest) : now);
  } else if (!down_webhook(tracked).empty()) {
    park(tracked, tracked.report.reason, tracked.report.message, now);
  } else {
    queue(tracked);
    tracked.report.reason = park_reason(EvictionVerdict::throttle);
    tracked.report.message = error.message();
  }
  // Several requests were in flight when the server asked to slow down. Their refusals count as one.
  if (now < throttled_until_) {
    if (error.retry_after)
      throttled_until_ =
          std::max(throttled_until_, now + std::min<Duration>(*error.retry_after, Backoff::longest_retry_after));
    return;
  }
  throttled_until_ = now + throttle_backoff_.next(rng_, error.retry_after);
  throttle_message_ = error.message();
  emit_(EventType::throttled, tracked.report);
}

void Pipeline::refuse(TrackedPod& tracked, const Error& error, EvictionVerdict verdict, TimePoint now) {
  // Any answer shows that the server can be reached again.
  if (error.code() == Errc::status) throttle_backoff_.reset();
  if (verdict != tracked.last_verdict) {
    tracked.backoff = Backoff(backoff_after(verdict));
    tracked.refusals = 0;
  }
  tracked.last_verdict = verdict;
  tracked.answer_lost = error.code() != Errc::status;
  ++tracked.refusals;
  if (!tracked.answer_lost) {
    const std::uint32_t times = verdict == tracked.refusal.verdict ? tracked.refusal.times + 1 : 1;
    tracked.refusal = {verdict, times, error.message(), webhook_refusal(error)};
  }
  TimePoint wake_at{};
  if (verdict == EvictionVerdict::budget && !book_.visible()) {
    const std::string& group = UnseenBudgets::group_of(tracked.pod);
    unseen_budgets_.refused(group, error.retry_after, now, rng_);
    wake_at = unseen_budgets_.next(group);
  } else {
    wake_at = now + tracked.backoff.next(rng_, error.retry_after);
  }
  if (verdict == EvictionVerdict::gone) {
    // The view should show the deletion soon. If it does not, the answer was about another pod, and the drain asks
    // again.
    park(tracked, reason::awaiting_watch, "the server reports that it does not exist any more",
         now + std::chrono::seconds(30));
    return;
  }
  park(tracked, std::string(park_reason(verdict)), explained(tracked, error, verdict), wake_at);
}

// Returns the message of a refusal. If the drain may not read the budget, it has only what the server says: the
// budget's name and numbers.
std::string Pipeline::explained(const TrackedPod& tracked, const Error& error, EvictionVerdict verdict) const {
  if (verdict != EvictionVerdict::budget && verdict != EvictionVerdict::overlap) return error.message();
  if (std::string known = book_.explain(*tracked.budgets); !known.empty()) return known;
  const std::string said = budget_refusal(error);
  if (said.empty()) return error.message();
  return fmt::format("blocked by a PodDisruptionBudget of namespace {}: {}", tracked.pod.ns, said);
}

void Pipeline::time_passed(TimePoint now) {
  std::vector<TrackedPod*> held;
  for (TrackedPod* tracked : order_) {
    if (tracked->state == PodState::terminating && !tracked->pod.terminating() && now >= tracked->accepted_until) {
      tracked->holds_place = false;
      // Other pods are tried first from now on, because the next eviction of this pod may have no effect either.
      tracked->refusals = 1;
      queue(*tracked);
    }
    if (tracked->state == PodState::terminating && !tracked->stuck && now >= tracked->terminating_until)
      mark_stuck(*tracked);
    if (tracked->state == PodState::parked && tracked->hold == TrackedPod::Hold::policy) held.push_back(tracked);
  }
  // A decision can remove the pod from `order_`, so this must not run inside the loop above.
  for (TrackedPod* tracked : held) apply_decision(*tracked, now);
  if (options_.skips_overdue) leave_overdue(now);
}

void Pipeline::leave_overdue(TimePoint now) {
  std::vector<TrackedPod*> overdue;
  for (TrackedPod* tracked : order_)
    if (tracked->state == PodState::terminating && decide_(tracked->pod).verdict == Verdict::skip)
      overdue.push_back(tracked);
  for (TrackedPod* tracked : overdue) apply_decision(*tracked, now);
}

TimePoint Pipeline::next_wake(TimePoint now) const {
  TimePoint next = TimePoint::max();
  const auto consider = [&](TimePoint when) {
    if (when > now) next = std::min(next, when);
  };
  for (const TrackedPod* tracked : order_) {
    // While throttled, the drain sends nothing. A pod that falls due before the end of the throttle waits for that end.
    if (tracked->state == PodState::parked && tracked->wake_at != TimePoint::max())
      consider(std::max(tracked->wake_at, throttled_until_));
    if (tracked->state == PodState::queued) consider(throttled_until_);
    if (tracked->state == PodState::terminating && !tracked->stuck) consider(tracked->terminating_until);
    if (tracked->state == PodState::terminating && !tracked->pod.terminating()) consider(tracked->accepted_until);
    if (to_be_shortened(*tracked)) consider(std::max(tracked->shorten_at, throttled_until_));
  }
  for (const RequestWindow* window : {&window_, &signal_window_})
    if (window->full()) consider(window->next());
  return next;
}

std::vector<std::pair<std::string, std::string>> Pipeline::plan() const {
  std::vector<std::pair<std::string, std::string>> plan;
  for (const TrackedPod* tracked : order_)
    if (tracked->state == PodState::queued) plan.emplace_back(tracked->pod.uid, tracked->pod.key());
  return plan;
}

void Pipeline::dry_run_answered(const std::string& uid, const Result<>& answer) {
  TrackedPod& tracked = pods_.at(uid);
  ++tracked.report.attempts;
  if (answer) {
    emit_(EventType::eviction_sent, tracked.report);
    return;
  }
  const EvictionVerdict verdict = classify_eviction(answer.error());
  park(tracked, std::string(park_reason(verdict)), explained(tracked, answer.error(), verdict), TimePoint::max());
}

bool Pipeline::clear() const {
  return order_.empty();
}

bool Pipeline::hopeless() const {
  return !order_.empty() && std::all_of(order_.begin(), order_.end(), [this](const TrackedPod* tracked) {
    return waits_for_all_others(*tracked) ||
           (tracked->state == PodState::parked && tracked->last_verdict == EvictionVerdict::fatal);
  });
}

Progress Pipeline::progress() const {
  Progress progress;
  progress.skipped = count_of(PodState::left);
  progress.to_evict = pods_.size() - progress.skipped;
  progress.vanished = count_of(PodState::vanished);
  progress.terminating = count_of(PodState::terminating);
  progress.waiting = count_of(PodState::parked);
  if (signal_window_.out() > 0)
    progress.waiting += static_cast<std::size_t>(
        std::count_if(order_.begin(), order_.end(), [](const TrackedPod* pod) { return waits(*pod) && pod->signal; }));
  return progress;
}

std::vector<PodReport> Pipeline::reports() const {
  std::vector<PodReport> reports;
  reports.reserve(pods_.size());
  for (const auto& [uid, tracked] : pods_) reports.push_back(tracked.report);
  std::sort(reports.begin(), reports.end(), [](const PodReport& a, const PodReport& b) {
    return std::tie(a.ns, a.name, a.uid) < std::tie(b.ns, b.name, b.uid);
  });
  return reports;
}

}  // namespace haulout::drain
