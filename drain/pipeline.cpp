#include "drain/pipeline.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <utility>

#include "drain/broken_gangs.hpp"
#include "drain/reasons.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

namespace {

bool stands_before(const TrackedPod* tracked, const OrderKey& order) {
  return tracked->order < order;
}

std::string controller_of(const k8s::Pod& pod) {
  return pod.controller ? pod.controller->kind + "/" + pod.controller->name : std::string();
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// Returns true if a guard has to read something again before the request for the pod is sent.
bool must_read_first(const std::vector<EvictionGuard*>& guards, TrackedPod& tracked, TimePoint now) {
  if (std::ranges::none_of(guards, [&](EvictionGuard* guard) { return guard->reads_first(tracked.pod, now); }))
    return false;
  if (tracked.state == PodState::parked) {
    tracked.reading = true;
    tracked.wake_at = TimePoint::max();
  }
  return true;
}

bool is_held_by_guard(const TrackedPod* tracked) {
  return tracked->state == PodState::parked && tracked->hold == TrackedPod::Hold::guard;
}

bool is_parked_for_an_event(const TrackedPod* tracked) {
  return tracked->state == PodState::parked && tracked->hold != TrackedPod::Hold::turn;
}

// Returns true if the server answered that the pod does not exist or that another pod has its name, while the view
// still has the pod.
bool said_gone(const TrackedPod& tracked) {
  return tracked.state == PodState::parked &&
         (tracked.last_verdict == EvictionVerdict::gone || tracked.last_verdict == EvictionVerdict::replaced);
}

// Returns true if the change from `a` to `b` may affect the eviction of the pod. Other changes, such as most of those
// of its status, must not wake the pod.
bool differs_for_eviction(const k8s::Pod& a, const k8s::Pod& b) {
  return a.labels != b.labels || a.annotations != b.annotations || a.ready != b.ready || a.phase != b.phase ||
         a.deletion_timestamp != b.deletion_timestamp || a.finalizers != b.finalizers;
}

// Returns true if `version` is newer than `than`. False if either resourceVersion is not a number.
bool is_newer(const std::string& version, const std::string& than) {
  const auto number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  };
  return number(version) && number(than) && k8s::is_older(than, version);
}

// With fewer pods than this, any watch event may be about the last one, so events are processed at once.
constexpr std::size_t few = 10;
// How long events may wait when the evictions of all pods have been sent. All pods may then be deleted at the same
// moment, and the drain must detect its end within 100 ms.
constexpr Duration patience_at_the_end = std::chrono::milliseconds(40);

// Returns true if no gang of the tier `gang` may be broken before `other` has left. Otherwise a run would be stopped
// for a drain that does not come to its end.
bool keeps_gangs_running(const TrackedPod& other, const Tier& gang) {
  using Hold = TrackedPod::Hold;
  if (other.state == PodState::parked && (other.hold == Hold::policy || other.hold == Hold::pinned)) return true;
  const Tier& tier = other.order.tier;
  const bool is_earlier_gang = tier.stage == Stage::gang && tier < gang && tier.gang != gang.gang;
  return is_earlier_gang && other.state != PodState::terminating && !other.pod.finished();
}

// Says in the report for which pod a queued one waits, or that it does not wait any more.
void note_wait(TrackedPod& tracked, const TrackedPod* other) {
  PodReport& report = tracked.report;
  if (!other) {
    if (report.reason != reason::waiting_for_other_pods) return;
    report.reason = tracked.decision.reason;
    report.message = tracked.decision.message;
  } else if (tracked.state == PodState::queued) {
    report.reason = reason::waiting_for_other_pods;
    const bool waits_itself = other->state == PodState::parked;
    report.message =
        fmt::format("waiting until pod {} has left{}", other->pod.key(),
                    waits_itself ? fmt::format(", which must wait, too ({})", other->report.reason) : std::string());
  }
}

}  // namespace

// Returns true if the last eviction of the pod failed or had no effect. A refusal by a budget does not count, because
// the pipeline wakes such a pod when its budget allows the eviction.
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

// Forgets which controllers are pinned, because the node is or was schedulable. The watch events of pods that were
// created then may have arrived before the Node's, so these pods may have counted as pods that came back. Policy still
// applies to the pods as before.
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
  if (const Stage stage = tracked.order.tier.stage; stage != Stage::own && stage != decision.stage) {
    // Its labels have changed, so it is evicted with others.
    remove_from_order(tracked);
    tracked.order = order_key(tracked.pod, options_.own_uid, options_.grace_seconds, options_.order, decision.stage);
    if (must_leave(tracked.state)) add_to_order(tracked);
  }
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
    // After the plan was made, the action `refuse` cannot stop the drain any more, so it parks the pod like the action
    // `park`.
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
  // While the plan is made, a pod that policy refuses stops the whole drain. Later it is only parked.
  if (!started_ && tracked.decision.verdict == Verdict::refuse) tracked.report.outcome = PodOutcome::refused;
}

void Pipeline::park(TrackedPod& tracked, std::string reason, std::string message, TimePoint wake_at) {
  const bool news =
      tracked.state != PodState::parked || tracked.report.reason != reason || tracked.report.message != message;
  const bool told_before = tracked.was_parked && tracked.report.reason == reason && tracked.report.message == message;
  become(tracked, PodState::parked);
  if (tracked.hold == TrackedPod::Hold::turn) tracked.hold = TrackedPod::Hold::none;
  tracked.was_parked = true;
  tracked.holds_place = false;
  tracked.wake_at = wake_at;
  tracked.report.outcome = PodOutcome::waiting;
  tracked.report.reason = std::move(reason);
  tracked.report.message = std::move(message);
  if (started_ && news && !told_before) emit_(EventType::parked, tracked.report);
}

// Parks a pod whose budget is exhausted, until its next signal is due (Signals in eviction_pacing.hpp).
void Pipeline::park_at_closed_gate(TrackedPod& tracked, TimePoint now) {
  // Admission has not seen an eviction of this pod yet, because the last one failed for a reason other than the budget.
  // The pod keeps the backoff of that failure.
  const bool tries_again = tracked.state == PodState::parked && !tracked.asked && troubled(tracked);
  if (tries_again && down_webhook(tracked).empty()) return;
  const std::string& budget = tracked.budgets->front();
  signals_.begin(budget, now, rng_);
  const TimePoint wake_at = std::max(now, signals_.next(budget, cause_of(tracked)));
  // A webhook denied the last signal, or cannot be called. That answer explains more than the budget does, so the pod
  // keeps the reason and message of the answer.
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
  // Finalizers are named as the cause only after the containers have ended. The end of the grace period does not prove
  // that.
  tracked.report.message =
      !containers_have_ended(tracked.pod) || tracked.pod.finalizers.empty()
          ? "the pod still exists 60 s after its grace period. Usually a container does not end, a volume cannot be "
            "unmounted, or the kubelet of the node does not run"
          : fmt::format("kept by its finalizers ({}): the controllers that set them must remove them",
                        fmt::join(tracked.pod.finalizers, ", "));
  emit_(EventType::parked, tracked.report);
}

// Makes a parked pod due after a change that may let its eviction succeed.
void Pipeline::wake(TrackedPod& tracked, TimePoint now) {
  if (tracked.state != PodState::parked || tracked.hold != TrackedPod::Hold::none) return;
  if (tracked.last_verdict == EvictionVerdict::fatal || tracked.last_verdict == EvictionVerdict::forbidden) return;
  // Frequent events must not cause a request each. So the pod is not tried before its last answer is old enough: 20 ms
  // for each refusal in a row, at most 1 s.
  const Duration spacing = std::min<Duration>(std::chrono::seconds(1), tracked.refusals * Backoff::minimum * 2);
  tracked.wake_at = std::min(tracked.wake_at, std::max(now, tracked.last_answer + spacing));
}

// Applies changes of the pod that were only recorded while its eviction was in flight.
void Pipeline::catch_up(TrackedPod& tracked, TimePoint now) {
  if (tracked.state == PodState::queued || tracked.state == PodState::parked) apply_decision(tracked, now);
}

std::string controller_key(const k8s::Pod& pod) {
  return pod.controller ? pod.ns + "/" + controller_of(pod) : std::string();
}

void Pipeline::see(TrackedPod& tracked, const k8s::Pod& pod) {
  tracked.pod = pod;
  if (pod.terminating()) return;
  tracked.had_finished = pod.finished();
  tracked.cut_off = false;  // also if etcd was restored from a backup of a time before the deletion
}

void Pipeline::track(const k8s::Pod& pod, TimePoint now) {
  TrackedPod& tracked = pods_[pod.uid];
  see(tracked, pod);
  tracked.order = order_key(pod, options_.own_uid, options_.grace_seconds, options_.order, decide_(pod).stage);
  tracked.report.ns = pod.ns;
  tracked.report.name = pod.name;
  tracked.report.uid = pod.uid;
  tracked.report.controller = controller_of(pod);
  tracked.budgets = book_.selection(pod);
  tracked.is_late = started_.has_value();
  tracked.known_since = tracked.told_at = now;
  tracked.state = PodState::left;
  ++count_of(PodState::left);
  apply_decision(tracked, now);
  if (tracked.is_late) note_late(tracked, now);
  if (tracked.decision.verdict == Verdict::evict && options_.pinned_controllers.contains(controller_key(pod)))
    pin(tracked, "has created pods on this cordoned node each time that the node was empty", now);
}

void Pipeline::note_late(TrackedPod& tracked, TimePoint now) {
  if (!must_leave(tracked.state)) return;
  emit_(EventType::late_pod, tracked.report);
  const auto& controller = tracked.pod.controller;
  // A pod counts as one that came back only if it was created while the node was cordoned. A pod that does not tolerate
  // the cordon may have been scheduled just before, so it counts only if it was created `race_window` or more after the
  // cordon. The time of creation decides, because the watch event may arrive late.
  const Duration age = tracked.pod.created ? std::max<Duration>(server_now_() - *tracked.pod.created, {}) : Duration{};
  const Duration on_their_way = tracked.pod.tolerates_unschedulable ? Duration{} : race_window;
  if (!controller || paused_ || now - age < taking_no_pods_since_ + on_their_way) return;
  if (vanished_of_[controller->uid] == 0) return;
  unsigned& returns = returns_[controller->uid];
  if (++returns >= returns_until_pinned)
    pin(tracked, fmt::format("has created pods on this cordoned node {} times", returns), now);
}

void Pipeline::pin(TrackedPod& tracked, const std::string& what, TimePoint now) {
  if (!must_leave(tracked.state) || tracked.state == PodState::terminating) return;
  const std::string why = fmt::format(
      "{} {} {}: {}", tracked.pod.controller->kind, tracked.pod.controller->name, what,
      tracked.pod.tolerates_unschedulable
          ? "its pods tolerate the taint node.kubernetes.io/unschedulable"
          : "its pods do not tolerate the cordon, so spec.nodeName or a custom scheduler binds them to this node");
  if (options_.leaves_pinned) {
    tracked.left_pinned = why + "; the pod stays (--pinned leave)";
    return apply_decision(tracked, now);
  }
  hold(tracked, TrackedPod::Hold::pinned, reason::pod_pinned,
       why +
           "; leave such pods on the node (--pinned leave), scale the controller down, or ask its owner to keep its "
           "pods off cordoned nodes");
}

void Pipeline::pod_changed(const k8s::Pod& pod, TimePoint now) {
  const auto found = pods_.find(pod.uid);
  if (found == pods_.end()) {
    track(pod, now);
    return;
  }
  TrackedPod& tracked = found->second;
  if (tracked.state == PodState::vanished) return;
  tracked.told_at = now;
  // A watch event that shows a terminating pod without deletionTimestamp is older than a list that arrived before it.
  // If the deletion was really undone, the next list shows that.
  if (tracked.pod.terminating() && !pod.terminating()) return;
  change(tracked, pod, now);
}

void Pipeline::change(TrackedPod& tracked, const k8s::Pod& pod, TimePoint now) {
  const bool relevant = differs_for_eviction(tracked.pod, pod);
  const bool revived = tracked.pod.terminating() && !pod.terminating();
  // A skipped pod that is terminating and has finished stays skipped. Policy might now count it as a pod that must
  // leave, so it is not applied again.
  const bool goes_unasked = tracked.state == PodState::left && tracked.report.outcome == PodOutcome::skipped &&
                            tracked.report.reason != terminating_too_long && pod.terminating() && pod.finished();
  // budget_changed() keeps the budgets of pods that must leave up to date. Those of a skipped pod are looked up here.
  const bool other_budgets = tracked.state == PodState::left || tracked.pod.labels != pod.labels;
  see(tracked, pod);
  if (other_budgets) tracked.budgets = book_.selection(pod);
  if (goes_unasked) return;
  if (pod.terminating() && tracked.state != PodState::left) {
    see_terminating(tracked, now);
    return;
  }
  if (revived && tracked.state == PodState::terminating && !tracked.request_out) return revive(tracked, now);
  tracked.has_news |= relevant;
  if (tracked.state == PodState::in_flight) return;
  apply_decision(tracked, now);
  if (!relevant) return;
  wake(tracked, now);
  // After the change the guard may allow the eviction: the pod may need no replacement any more, or have a new
  // max-unavailable annotation.
  if (tracked.state == PodState::parked && tracked.hold == TrackedPod::Hold::guard)
    tracked.wake_at = std::min(tracked.wake_at, now);
}

// Queues a pod that was terminating and is not any more, because etcd was restored from a backup of an earlier time.
void Pipeline::revive(TrackedPod& tracked, TimePoint now) {
  tracked.holds_place = tracked.grace_given = false;
  queue(tracked);
  apply_decision(tracked, now);
}

void Pipeline::pod_listed(const k8s::Pod& pod, TimePoint asked, TimePoint now) {
  const auto found = pods_.find(pod.uid);
  if (found == pods_.end()) {
    track(pod, now);
    pods_.at(pod.uid).listed_at = pods_.at(pod.uid).told_at = asked;
    return;
  }
  TrackedPod& tracked = found->second;
  tracked.listed_at = std::max(tracked.listed_at, asked);
  if (tracked.state == PodState::vanished) {
    // The watch showed the deletion after the list was requested. A deleted UID is never used again, so the list is
    // older.
    if (tracked.vanished_since > asked) return;
    become(tracked, PodState::left);
    tracked.report.vanished_at.reset();
    // Its deletion was undone: etcd was restored from a backup. If it is terminating, this began before the backup was
    // made, so it does not show that its gang is broken (broken_gangs.hpp).
    tracked.known_since = now;
  }
  // Ignores a list entry that is older than the last watch event. Revisions start again after etcd was restored from a
  // backup, so they cannot be compared then. But the restore ends the watches, so no watch event came after the list
  // was requested.
  if (tracked.told_at > asked && is_newer(tracked.pod.resource_version, pod.resource_version)) return;
  // The watch or an answer showed the pod terminating after the list was requested, so the list is older.
  if (tracked.state == PodState::terminating && !pod.terminating() && tracked.terminating_since >= asked) return;
  change(tracked, pod, now);
}

void Pipeline::all_missing_but(const auto& listed, TimePoint asked, TimePoint now, WallTime wall) {
  std::vector<std::string> missing;
  for (const auto& [uid, tracked] : pods_)
    if (!listed.contains(uid)) missing.push_back(uid);
  for (const std::string& uid : missing) pod_missing(uid, asked, now, wall);
}

void Pipeline::reconcile(const std::vector<k8s::Pod>& listed, TimePoint asked, TimePoint now, WallTime wall) {
  std::set<std::string> present;
  for (const k8s::Pod& pod : listed) {
    present.insert(pod.uid);
    pod_listed(pod, asked, now);
  }
  all_missing_but(present, asked, now, wall);
}

// No second pod ever gets the same UID. So a pod that existed before the list was requested, and is not in the list,
// was deleted.
void Pipeline::pod_missing(const std::string& uid, TimePoint asked, TimePoint now, WallTime wall) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  const TrackedPod& tracked = found->second;
  const bool was_there = tracked.known_since <= asked && tracked.listed_at <= asked;
  if (was_there || tracked.listed_at == asked) pod_gone(uid, now, wall);
}

void Pipeline::only_listed(const std::map<std::string, k8s::Pod>& listed, TimePoint asked, TimePoint now,
                           WallTime wall) {
  all_missing_but(listed, asked, now, wall);
}

bool Pipeline::any_in_doubt() const {
  return std::any_of(order_.begin(), order_.end(), [](const TrackedPod* tracked) {
    return (said_gone(*tracked) && tracked->refusals >= 2) ||
           (tracked->state == PodState::terminating && tracked->stuck);
  });
}

bool Pipeline::any_held_by_budget() const {
  return std::any_of(order_.begin(), order_.end(), [](const TrackedPod* tracked) {
    return waits(*tracked) && tracked->last_verdict == EvictionVerdict::budget;
  });
}

bool Pipeline::any_held_by_guard() const {
  return count_of(PodState::parked) > 0 && std::any_of(order_.begin(), order_.end(), is_held_by_guard);
}

std::set<std::string> Pipeline::namespaces_held_by_guards() const {
  std::set<std::string> namespaces;
  for (const TrackedPod* tracked : order_)
    if (is_held_by_guard(tracked)) namespaces.insert(tracked->pod.ns);
  return namespaces;
}

void Pipeline::see_terminating(TrackedPod& tracked, TimePoint now) {
  const auto grace = k8s::grace_period(tracked.pod.deletion_grace_seconds.value_or(tracked.pod.grace_seconds));
  const bool first = tracked.state != PodState::terminating;
  // Uses the time until deletionTimestamp by the server's clock, not the full grace period, because another client may
  // have requested the deletion of the pod long ago.
  const Duration left = *tracked.pod.deletion_timestamp - server_now_();
  const TimePoint until = now + std::clamp<Duration>(left, Duration::zero(), grace) + place_margin;
  tracked.terminating_until = first ? until : std::min(tracked.terminating_until, until);
  become(tracked, PodState::terminating);
  tracked.report.outcome = PodOutcome::terminating;
  tracked.cut_off |= !tracked.had_finished && !tracked.pod.finished();
  if (!first) return;
  tracked.terminating_since = now;
  tracked.stuck = false;
  tracked.report.reason.clear();
  tracked.report.message.clear();
  if ((tracked.request_out || tracked.answer_lost) && !tracked.report.evicted_at) {
    // The watch event arrived before the answer, or the answer was lost. The server's deletionTimestamp shows when the
    // server accepted the eviction.
    tracked.report.evicted_at = *tracked.pod.deletion_timestamp - grace;
    tracked.inferred = tracked.request_out;
    tracked.holds_place = true;
    emit_(EventType::evicted, tracked.report);
  } else if (started_ && !tracked.report.evicted_at) {
    emit_(EventType::terminating, tracked.report);
  }
}

void Pipeline::vanish(TrackedPod& tracked, TimePoint now, WallTime wall) {
  // Reports the deletion of a pod that must leave, and of a pod that the drain tried to evict and then stopped waiting
  // for.
  const bool mattered = must_leave(tracked.state) || tracked.report.attempts > 0;
  remove_from_order(tracked);
  tracked.holds_place = false;
  become(tracked, PodState::vanished);
  tracked.vanished_since = now;
  if (!mattered) return;
  tracked.report.outcome = tracked.report.evicted_at ? PodOutcome::evicted : PodOutcome::gone;
  tracked.report.vanished_at = wall;
  tracked.report.reason.clear();
  tracked.report.message.clear();
  if (tracked.pod.controller && tracked.report.attempts > 0) ++vanished_of_[tracked.pod.controller->uid];
  emit_(EventType::vanished, tracked.report);
}

void Pipeline::pod_gone(const std::string& uid, TimePoint now, WallTime wall) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second.state == PodState::vanished) return;
  TrackedPod& tracked = found->second;
  // The eviction was sent and its answer has not arrived or is lost, so the pod counts as evicted by the drain.
  const bool unanswered = tracked.state == PodState::in_flight || tracked.shortening || tracked.answer_lost;
  if (unanswered && !tracked.report.evicted_at) {
    tracked.report.evicted_at = wall;
    tracked.inferred = true;
  }
  // Keeps the entry of a pod that the drain tried to evict, because it is part of the report, and because the answer to
  // a request in flight frees the lane of the budget.
  if (tracked.state == PodState::left && !tracked.request_out && tracked.report.attempts == 0) {
    --count_of(PodState::left);
    pods_.erase(found);  // a skipped pod that was deleted is not part of the report
    return;
  }
  vanish(tracked, now, wall);
}

void Pipeline::budget_changed(const std::string& uid, const k8s::PodDisruptionBudget* budget, TimePoint now) {
  const auto [ns, selection_changed, edited] = book_.update(uid, budget);
  if (edited) signals_.hasten(uid, now);
  if (!selection_changed && count_of(PodState::parked) == 0) return;
  for (TrackedPod* tracked : order_) {
    if (tracked->pod.ns != ns) continue;
    bool helped = false;
    if (selection_changed) {
      auto before = std::exchange(tracked->budgets, book_.selection(tracked->pod));
      helped = before != tracked->budgets;
    }
    // New counts of a budget wake only the pods that wait for it: pods that it refused, and pods whose last signal was
    // throttled or denied. They do not wake a pod whose real eviction a webhook denied, or one that is parked because
    // several budgets select it.
    const bool held_back = tracked->last_verdict == EvictionVerdict::budget ||
                           tracked->last_verdict == EvictionVerdict::throttle || tracked->denied;
    helped = helped || (held_back && contains(*tracked->budgets, uid));
    if (helped && (edited || book_.gate(tracked->pod, tracked->budgets) != BudgetBook::Gate::closed))
      wake(*tracked, now);
  }
}

std::size_t Pipeline::places_taken() const {
  return static_cast<std::size_t>(
      std::count_if(order_.begin(), order_.end(), [](const TrackedPod* tracked) { return tracked->holds_place; }));
}

bool Pipeline::few_left() const {
  return order_.size() < few;
}

Duration Pipeline::patience() const {
  if (few_left()) return Duration::zero();
  const std::size_t unsent = count_of(PodState::queued) + count_of(PodState::parked);
  const bool for_a_place = options_.max_places != 0 && unsent > 0;
  const bool for_an_event = signal_window_.out() > 0 ||
                            (count_of(PodState::parked) > 0 && std::ranges::any_of(order_, is_parked_for_an_event));
  if (!window_.full() && (for_a_place || for_an_event)) return Duration::zero();
  return unsent > 0 || window_.full() ? patience_before : patience_at_the_end;
}

void Pipeline::depart(TrackedPod& tracked, TimePoint now) {
  become(tracked, PodState::in_flight);
  tracked.request_out = true;
  tracked.has_news = false;
  tracked.sent_at = now;
  tracked.shorten_at = now + Backoff::minimum;
  tracked.in_turn_for = down_webhook(tracked);
  if (!tracked.in_turn_for.empty()) down_webhooks_.sent(tracked.in_turn_for, tracked.pod.uid);
  ++tracked.report.attempts;
}

void Pipeline::send(TrackedPod& tracked, TimePoint now) {
  if (tracked.state == PodState::parked) emit_(EventType::resumed, tracked.report);
  depart(tracked, now);
  tracked.holds_place = true;
  window_.sent(tracked.pod.uid, tracked.pod.ns, now);
  for (const std::string& budget : *tracked.budgets) signals_.asked(budget, now, rng_);
  tracked.lane = options_.respect_budgets ? book_.sent(tracked.pod, *tracked.budgets) : std::vector<std::string>();
  emit_(EventType::eviction_sent, tracked.report);
}

void Pipeline::send_signal(TrackedPod& tracked, TimePoint now) {
  const std::string& budget = tracked.budgets->front();
  signals_.sent(budget, cause_of(tracked), now, rng_);
  tracked.signal = true;
  depart(tracked, now);
  signal_window_.sent(tracked.pod.uid, tracked.pod.ns, now);
  book_.signalled(tracked.pod, budget);
  tracked.lane = *tracked.budgets;
  emit_(EventType::signal_sent, tracked.report);
}

Signals::Cause Pipeline::cause_of(const TrackedPod& tracked) {
  if (!tracked.asked) return Signals::Cause::first;
  return tracked.has_news ? Signals::Cause::news : Signals::Cause::turn;
}

std::string Pipeline::down_webhook(const TrackedPod& tracked) const {
  const auto& webhook = tracked.refusal.webhook;
  return webhook && webhook->down && down_webhooks_.contains(webhook->name) ? webhook->name : std::string();
}

bool Pipeline::waits_unseen(const TrackedPod& tracked) const {
  return options_.respect_budgets && !book_.visible() && tracked.state == PodState::parked &&
         tracked.last_verdict == EvictionVerdict::budget && !tracked.has_news;
}

BudgetBook::Gate Pipeline::gate_of(const TrackedPod& tracked) const {
  return options_.respect_budgets ? book_.gate(tracked.pod, tracked.budgets) : BudgetBook::Gate::open;
}

std::vector<k8s::Pod> Pipeline::take_evictions(TimePoint now) {
  window_.look(now);
  signal_window_.look(now);
  if (paused_ || now < throttled_until_) return {};
  ask_guards_again(now);
  Taking taking{now, options_.max_places == 0 ? 0 : places_taken()};
  take_shortenings(taking);
  if (take(Pass::untroubled, taking)) take(Pass::troubled, taking);
  take_in_turn(taking);
  return std::move(taking.evictions);
}

std::optional<EvictionGuard::Hold> Pipeline::held_by_guard(TrackedPod& tracked, TimePoint now) {
  const auto ask = [&]() -> std::optional<EvictionGuard::Hold> {
    for (EvictionGuard* guard : options_.guards)
      if (auto held = guard->held(tracked.pod, now)) return held;
    return std::nullopt;
  };
  auto held = ask();
  if (!held || tracked.state != PodState::parked || !tracked.answer_lost) return held;
  // The guards count the pod as one that may be leaving. While they hold it, no further request shows whether it is.
  const TimePoint limit = saturating_add(tracked.sent_at, acceptance_limit);
  held->until = std::min(held->until, limit);
  if (now < limit) return held;
  tracked.answer_lost = false;
  become(tracked, PodState::parked);
  return ask();
}

bool Pipeline::park_for_guard(TrackedPod& tracked, TimePoint now) {
  if (options_.guards.empty()) return false;
  auto held = held_by_guard(tracked, now);
  if (tracked.hold == TrackedPod::Hold::guard || tracked.hold == TrackedPod::Hold::turn)
    tracked.hold = TrackedPod::Hold::none;
  if (!held) return false;
  tracked.hold = TrackedPod::Hold::guard;
  park(tracked, std::move(held->reason), std::move(held->message), held->until);
  return true;
}

void Pipeline::ask_guards_again(TimePoint now) {
  const auto changed = std::exchange(guards_changed_, {});
  if (changed.decisions) {
    std::vector<TrackedPod*> waiting;
    for (TrackedPod* tracked : order_)
      if (!tracked->request_out && (tracked->state == PodState::queued || tracked->state == PodState::parked))
        waiting.push_back(tracked);
    // A decision can remove the pod from `order_`, so this must not run inside the loop above.
    for (TrackedPod* tracked : waiting) apply_decision(*tracked, now);
  }
  if (!changed.any || options_.guards.empty() || count_of(PodState::parked) == 0) return;
  for (TrackedPod* tracked : order_) {
    if (std::exchange(tracked->reading, false) && tracked->state == PodState::parked &&
        tracked->hold != TrackedPod::Hold::policy)
      tracked->wake_at = std::min(tracked->wake_at, now);
    if (tracked->hold != TrackedPod::Hold::guard || tracked->state != PodState::parked) continue;
    if (auto held = held_by_guard(*tracked, now)) {
      park(*tracked, std::move(held->reason), std::move(held->message), held->until);
    } else {
      tracked->hold = TrackedPod::Hold::turn;
      tracked->wake_at = std::min(tracked->wake_at, now);
    }
  }
}

bool Pipeline::take(Pass pass, Taking& taking) {
  const TimePoint now = taking.now;
  bool others = false;
  const Tier* open_tier = nullptr;
  BudgetBook::Selection busy = nullptr;
  // A pod that was never parked keeps the next tier from starting; a pod that was parked before does not.
  const auto close_behind = [&](const TrackedPod& tracked) {
    if (!tracked.was_parked && !open_tier) open_tier = &tracked.order.tier;
  };
  for (TrackedPod* tracked : order_) {
    const bool due =
        tracked->state == PodState::queued || (tracked->state == PodState::parked && tracked->wake_at <= now);
    // A pod that exists again after etcd was restored from a backup may still have a request in flight from before; it
    // must wait for the answer.
    if (tracked->state == PodState::in_flight || (due && tracked->request_out)) {
      close_behind(*tracked);
      continue;
    }
    if (!due) continue;
    if (open_tier && *open_tier < tracked->order.tier) break;
    const TrackedPod* const other = waits_for(*tracked);
    note_wait(*tracked, other);
    if (other) continue;
    if (troubled(*tracked) != (pass == Pass::troubled)) {
      others = true;
      close_behind(*tracked);
      continue;
    }
    // Pods of one controller are adjacent in `order_`. If a lane is busy for the first of them, it is busy for all with
    // the same budgets.
    const bool same_lane = busy && busy == tracked->budgets;
    const auto gate = same_lane ? BudgetBook::Gate::busy : gate_of(*tracked);
    if (gate != BudgetBook::Gate::busy && park_for_guard(*tracked, now)) continue;
    busy = gate == BudgetBook::Gate::busy && !tracked->budgets->empty() ? tracked->budgets : nullptr;
    if (gate == BudgetBook::Gate::closed) park_at_closed_gate(*tracked, now);
    if (gate == BudgetBook::Gate::closed || !down_webhook(*tracked).empty() || waits_unseen(*tracked)) {
      taking.in_turn.push_back(tracked);
      continue;
    }
    close_behind(*tracked);
    if (gate == BudgetBook::Gate::busy) continue;
    if (!has_place(taking) || !window_.takes(tracked->pod.ns)) {
      if (tracked->state == PodState::parked) tracked->hold = TrackedPod::Hold::turn;
      continue;
    }
    if (must_read_first(options_.guards, *tracked, now)) continue;
    send(*tracked, now);
    ++taking.places;
    taking.evictions.push_back(tracked->pod);
  }
  return others;
}

// Sends evictions of the pods of which only one at a time may be tried: the pod whose last request is oldest comes
// first.
void Pipeline::take_in_turn(Taking& taking) {
  std::erase_if(taking.in_turn, [&](const TrackedPod* tracked) { return tracked->wake_at > taking.now; });
  std::sort(taking.in_turn.begin(), taking.in_turn.end(), [](const TrackedPod* a, const TrackedPod* b) {
    return a->sent_at != b->sent_at ? a->sent_at < b->sent_at : a->order < b->order;
  });
  for (TrackedPod* tracked : taking.in_turn)
    if (take_one_in_turn(*tracked, taking)) taking.evictions.push_back(tracked->pod);
}

// Sends the eviction, or a signal if the budget is exhausted, if the pod may be tried now. Otherwise returns false: the
// pod has to wait.
bool Pipeline::take_one_in_turn(TrackedPod& tracked, Taking& taking) {
  const std::string webhook = down_webhook(tracked);
  const TimePoint webhook_at = webhook.empty() ? TimePoint::min() : down_webhooks_.next(webhook);
  if (webhook_at > taking.now) {
    if (webhook_at != TimePoint::max())
      park(tracked, std::string(park_reason(EvictionVerdict::retry)), tracked.refusal.message, webhook_at);
    return false;
  }
  const TimePoint unseen_at =
      waits_unseen(tracked) ? unseen_budgets_.next(UnseenBudgets::group_of(tracked.pod)) : TimePoint::min();
  if (unseen_at > taking.now) {
    tracked.wake_at = unseen_at;
    return false;
  }
  // Checks guard and gate again: since take() checked them, another pod may have been evicted, so that the guard now
  // parks this pod or the lane is busy.
  if (park_for_guard(tracked, taking.now)) return false;
  const BudgetBook::Gate gate = gate_of(tracked);
  if (gate == BudgetBook::Gate::busy || !has_place(taking)) return false;
  if (gate == BudgetBook::Gate::open) {
    if (!window_.takes(tracked.pod.ns) || must_read_first(options_.guards, tracked, taking.now)) return false;
    send(tracked, taking.now);
    ++taking.places;
    return true;
  }
  const std::string& budget = tracked.budgets->front();
  if (const TimePoint due = signals_.next(budget, cause_of(tracked)); due > taking.now) {
    tracked.wake_at = due;
    return false;
  }
  if (signals_.under_way(budget) || !signal_window_.takes(tracked.pod.ns)) return false;
  if (must_read_first(options_.guards, tracked, taking.now)) return false;
  send_signal(tracked, taking.now);
  return true;
}

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
      // It is not known yet when the grace period ends and the pod's place becomes free: the period begins when the pod
      // gets its deletionTimestamp, which a webhook may delay.
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
  // The request failed, but the watch or a list has already shown the pod terminating or deleted, which stays valid. If
  // the server refused the eviction, another client must have deleted the pod. If the answer was lost, the eviction may
  // have taken effect. A failed request to shorten the grace period of a terminating pod gets here, too.
  if (tracked.state != PodState::in_flight) {
    if (std::exchange(tracked.inferred, false) && answer.error().code() == Errc::status) {
      tracked.report.evicted_at.reset();
      if (tracked.state == PodState::vanished) tracked.report.outcome = PodOutcome::gone;
    }
    // Meanwhile a list has shown the pod without a deletionTimestamp (etcd was restored from a backup). The answer
    // refers to the state before that, so the pod is queued again.
    if (tracked.state == PodState::terminating && !tracked.pod.terminating()) revive(tracked, now);
    if (shortening && tracked.state == PodState::terminating) not_shortened(tracked, answer.error(), now);
    return;
  }
  if (verdict == EvictionVerdict::throttle) {
    throttle(tracked, answer.error(), was_signal, now);
  } else {
    refuse(tracked, answer.error(), verdict, now);
    // The server refused the signal, but its budget allows the eviction by now. So the pod is tried again soon.
    const bool opened =
        was_signal && verdict == EvictionVerdict::budget && gate_of(tracked) != BudgetBook::Gate::closed;
    if (opened) tracked.wake_at = std::max(now, tracked.sent_at + Backoff::minimum);
  }
  catch_up(tracked, now);
  // The pod is not being evicted now, so the guards may allow the eviction of another pod instead (P9): a pod of the
  // same controller, or one with volumes of the same CSI driver.
  guards_changed();
}

// Updates the windows, lanes and signals. Must be called for every answer, whatever the state of the pod is by now.
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
  // Only these four classes of answers prove that the admission webhooks have seen the request.
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

// Called when an eviction was accepted. If a budget that the drain may not read refused a pod of the same controller
// before, that budget may now allow the eviction of the controller's other pods, too, so they become due. If it does
// not, the server refuses the next of them.
void Pipeline::unseen_budget_lets_go(const TrackedPod& tracked, TimePoint now) {
  const std::string& group = UnseenBudgets::group_of(tracked.pod);
  if (!unseen_budgets_.let_go(group)) return;
  for (TrackedPod* other : order_)
    if (waits_unseen(*other) && UnseenBudgets::group_of(other->pod) == group) wake(*other, now);
}

// Called when the webhook can be called again. All pods that it blocked become due.
void Pipeline::webhook_is_back(const std::string& name, TimePoint now) {
  for (TrackedPod* tracked : order_)
    if (tracked->state == PodState::parked && tracked->hold == TrackedPod::Hold::none && down_webhook(*tracked) == name)
      tracked->wake_at = std::min(tracked->wake_at, std::max(now, tracked->sent_at + Backoff::minimum));
  down_webhooks_.back(name);
}

// Called when the webhook no longer denies a pod that it denied before. Only the denied pod that was tried longest ago
// becomes due, because the webhook may allow the evictions one by one.
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
  // Several requests may have been in flight when the server began to throttle. Their refusals count as one.
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
    // The view should show the deletion soon. If the view still has the pod after 30 s, the eviction is sent again.
    park(tracked, reason::awaiting_watch, "the API server reports that the pod does not exist any more",
         now + std::chrono::seconds(30));
    return;
  }
  park(tracked, std::string(park_reason(verdict)), explained(tracked, error, verdict), wake_at);
}

// Returns the message of a refusal. If the drain may not read the budget, the message has only what the server's answer
// contains: the budget's name and numbers.
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
    // While throttled, the drain sends nothing. A pod that is due before the end of the throttle waits until that end.
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

const TrackedPod* Pipeline::waits_for(const TrackedPod& tracked) const {
  const Tier& tier = tracked.order.tier;
  // The deletion of a member of a gang that has finished or is terminating meanwhile stops nothing.
  if (tier.stage == Stage::gang && (tracked.pod.finished() || tracked.pod.terminating())) return nullptr;
  // `order_` begins with the earliest stage.
  if (order_.front()->order.tier.stage < tier.stage) return order_.front();
  if (tier.stage != Stage::gang || is_in_broken_gang(tracked.pod, pods_)) return nullptr;
  const auto other = std::ranges::find_if(
      order_, [&](const TrackedPod* one) { return one != &tracked && keeps_gangs_running(*one, tier); });
  return other == order_.end() ? nullptr : *other;
}

bool Pipeline::hopeless() const {
  const auto is_rejected = [](const TrackedPod& tracked) {
    return tracked.state == PodState::parked && tracked.last_verdict == EvictionVerdict::fatal;
  };
  return !order_.empty() && std::ranges::all_of(order_, [&](const TrackedPod* tracked) {
    if (is_rejected(*tracked)) return true;
    // What policy holds up may end its wait by itself, so neither such a pod nor what waits for it is hopeless.
    const TrackedPod* const other = waits_for(*tracked);
    if (!other) return false;
    return other->order.tier.stage < tracked->order.tier.stage ||
           (tracked->state == PodState::queued && is_rejected(*other));
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

bool Pipeline::to_be_shortened(const TrackedPod& tracked) const {
  if (!options_.grace_seconds || tracked.grace_given || tracked.request_out) return false;
  if (tracked.state != PodState::terminating || !tracked.pod.terminating()) return false;
  if (tracked.decision.verdict != Verdict::evict || waits_for(tracked)) return false;
  constexpr auto unset = std::numeric_limits<std::int64_t>::max();
  return tracked.pod.deletion_grace_seconds.value_or(unset) > std::max<std::int64_t>(*options_.grace_seconds, 0);
}

void Pipeline::take_shortenings(Taking& taking) {
  if (!options_.grace_seconds || count_of(PodState::terminating) == 0) return;
  for (TrackedPod* tracked : order_) {
    if (!to_be_shortened(*tracked) || tracked->shorten_at > taking.now || !window_.takes(tracked->pod.ns)) continue;
    tracked->request_out = tracked->shortening = true;
    window_.sent(tracked->pod.uid, tracked->pod.ns, taking.now);
    ++tracked->report.attempts;
    tracked->lane.clear();
    emit_(EventType::eviction_sent, tracked->report);
    taking.evictions.push_back(tracked->pod);
  }
}

// Handles a failed request to shorten a grace period. If no retry can resolve the error, the period stays as it is.
void Pipeline::not_shortened(TrackedPod& tracked, const Error& error, TimePoint now) {
  const EvictionVerdict verdict = classify_eviction(error);
  const bool final = verdict == EvictionVerdict::gone || verdict == EvictionVerdict::replaced ||
                     verdict == EvictionVerdict::forbidden || verdict == EvictionVerdict::fatal;
  tracked.grace_given = final;
  tracked.shorten_at = now + tracked.backoff.next(rng_, error.retry_after);
  tracked.report.message = "its grace period could not be shortened: " + error.message();
}

}  // namespace haulout::drain
