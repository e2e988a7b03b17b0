// Pipeline: processes what the views of the cluster deliver, watch events and lists.
#include <fmt/format.h>
#include <algorithm>

#include "drain/pipeline.hpp"
#include "drain/reasons.hpp"
#include "k8s/objects.hpp"

namespace haulout::drain {

namespace {

std::string controller_of(const k8s::Pod& pod) {
  return pod.controller ? pod.controller->kind + "/" + pod.controller->name : std::string();
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

bool is_held_by_guard(const TrackedPod* tracked) {
  return tracked->state == PodState::parked && tracked->hold == TrackedPod::Hold::guard;
}

// True if the server said that the pod does not exist or that another pod has its name, while the view still has it.
bool said_gone(const TrackedPod& tracked) {
  return tracked.state == PodState::parked &&
         (tracked.last_verdict == EvictionVerdict::gone || tracked.last_verdict == EvictionVerdict::replaced);
}

// True if a change of the pod may affect its eviction. Other changes, such as heartbeats, must not wake the pod.
bool differs_for_eviction(const k8s::Pod& a, const k8s::Pod& b) {
  return a.labels != b.labels || a.annotations != b.annotations || a.ready != b.ready || a.phase != b.phase ||
         a.deletion_timestamp != b.deletion_timestamp || a.finalizers != b.finalizers;
}

// True if `version` is newer than `than`. False if either resourceVersion is not a number.
bool is_newer(const std::string& version, const std::string& than) {
  const auto number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  };
  return number(version) && number(than) && k8s::is_older(than, version);
}

}  // namespace

std::string controller_key(const k8s::Pod& pod) {
  return pod.controller ? pod.ns + "/" + controller_of(pod) : std::string();
}

void Pipeline::see(TrackedPod& tracked, const k8s::Pod& pod) {
  tracked.pod = pod;
  if (!pod.terminating()) tracked.had_finished = pod.finished();
}

void Pipeline::track(const k8s::Pod& pod, TimePoint now) {
  TrackedPod& tracked = pods_[pod.uid];
  see(tracked, pod);
  tracked.order = order_key(pod, options_.own_uid, options_.grace_seconds, options_.order);
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
    pin(tracked, "has come back to this cordoned node each time that it was empty", now);
}

void Pipeline::note_late(TrackedPod& tracked, TimePoint now) {
  if (!must_leave(tracked.state)) return;
  emit_(EventType::late_pod, tracked.report);
  const auto& controller = tracked.pod.controller;
  // A pod is a return only if it was created while the node was cordoned. A pod that does not tolerate the cordon may
  // have been scheduled just before, so it gets `race_window`. The age of the pod counts, because its event may arrive
  // late.
  const Duration age = tracked.pod.created ? std::max<Duration>(server_now_() - *tracked.pod.created, {}) : Duration{};
  const Duration on_their_way = tracked.pod.tolerates_unschedulable ? Duration{} : race_window;
  if (!controller || paused_ || now - age < taking_no_pods_since_ + on_their_way) return;
  if (vanished_of_[controller->uid] == 0) return;
  unsigned& returns = returns_[controller->uid];
  if (++returns >= returns_until_pinned)
    pin(tracked, fmt::format("has come back to this cordoned node {} times", returns), now);
}

void Pipeline::pin(TrackedPod& tracked, const std::string& what, TimePoint now) {
  if (!must_leave(tracked.state) || tracked.state == PodState::terminating) return;
  const std::string why = fmt::format(
      "{} {} {}: {}", tracked.pod.controller->kind, tracked.pod.controller->name, what,
      tracked.pod.tolerates_unschedulable
          ? "its pods tolerate the taint node.kubernetes.io/unschedulable"
          : "its pods do not tolerate the cordon, so spec.nodeName or a custom scheduler binds them to this node");
  if (options_.leaves_pinned) {
    tracked.left_pinned = why + "; it stays (--pinned leave)";
    return apply_decision(tracked, now);
  }
  hold(tracked, TrackedPod::Hold::pinned, reason::pod_pinned,
       why + "; leave such pods on the node (--pinned leave), scale them down, or ask their owner to change that");
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
  // The event is older than a list that arrived before it. If the deletion was really undone, the next list shows that.
  if (tracked.pod.terminating() && !pod.terminating()) return;
  change(tracked, pod, now);
}

void Pipeline::change(TrackedPod& tracked, const k8s::Pod& pod, TimePoint now) {
  const bool relevant = differs_for_eviction(tracked.pod, pod);
  const bool revived = tracked.pod.terminating() && !pod.terminating();
  // A skipped pod that terminates and has finished stays skipped. Policy, which might now count it as a pod that must
  // leave, is not asked again.
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
  // The change may lift the guard: the pod may need no replacement any more, or have a new max-unavailable annotation.
  if (tracked.state == PodState::parked && tracked.hold == TrackedPod::Hold::guard)
    tracked.wake_at = std::min(tracked.wake_at, now);
}

// etcd was restored from a backup of a time when the pod was not deleted yet. The drain starts again with the pod.
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
    // The watch showed the deletion after the list was requested. A UID never comes back by itself, so the list is
    // older.
    if (tracked.vanished_since > asked) return;
    become(tracked, PodState::left);
    tracked.report.vanished_at.reset();
  }
  // Ignores a list entry that is older than the last watch event. After an etcd restore the revisions start again, but
  // then the server also ends its watches.
  if (tracked.told_at > asked && is_newer(tracked.pod.resource_version, pod.resource_version)) return;
  // The watch or an answer showed the deletion after the list was requested, so the list is older.
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

// A UID is created once and deleted once. A pod that existed before the list was requested and is not in it was
// deleted.
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
  // have deleted the pod long ago.
  const Duration left = *tracked.pod.deletion_timestamp - server_now_();
  const TimePoint until = now + std::clamp<Duration>(left, Duration::zero(), grace) + place_margin;
  tracked.terminating_until = first ? until : std::min(tracked.terminating_until, until);
  become(tracked, PodState::terminating);
  tracked.report.outcome = PodOutcome::terminating;
  if (!first) return;
  tracked.terminating_since = now;
  tracked.stuck = false;
  tracked.report.reason.clear();
  tracked.report.message.clear();
  if ((tracked.request_out || tracked.answer_lost) && !tracked.report.evicted_at) {
    // The watch event came before the answer, or the answer was lost. The server's deletionTimestamp tells when the
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
  // Reports the deletion of each pod that the drain tried to evict, even if it did not wait for the pod any more.
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
  // Keeps the entry while a request is in flight, because the answer frees the lane of the budget.
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
    // New counts of a budget help only the pods that it holds back. They do not help a pod that a webhook denied or
    // that several budgets select. A parked pod whose signal was throttled or denied waits for its budget, too.
    const bool held_back = tracked->last_verdict == EvictionVerdict::budget ||
                           tracked->last_verdict == EvictionVerdict::throttle || tracked->denied;
    helped = helped || (held_back && contains(*tracked->budgets, uid));
    if (helped && (edited || book_.gate(tracked->pod, *tracked->budgets) != BudgetBook::Gate::closed))
      wake(*tracked, now);
  }
}

}  // namespace haulout::drain
